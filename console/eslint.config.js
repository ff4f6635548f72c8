import tseslint from "typescript-eslint";

const arrays = { "@typescript-eslint/array-type": ["error", { default: "array-simple" }] };

export default tseslint.config(
  { ignores: ["dist", "generated", "node_modules", "test-results"] },
  {
    files: ["src/**/*.ts", "src/**/*.tsx"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { project: "./tsconfig.json" } },
    rules: {
      ...arrays,
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": "off", // handlers are written as expressions
    },
  },
  {
    files: ["test/**/*.ts", "e2e/**/*.ts", "*.ts"],
    extends: [tseslint.configs.strict, tseslint.configs.stylistic],
    rules: arrays,
  },
);
