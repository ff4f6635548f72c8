import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist", "build", "node_modules", "src/wire.ts"] },
  {
    files: ["src/**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { project: "./tsconfig.src.json" } },
    rules: {
      "@typescript-eslint/array-type": ["error", { default: "array-simple" }],
      "@typescript-eslint/restrict-template-expressions": [
        "error",
        // A reference in a text becomes a template: that is what it is for.
        { allowNumber: true, allow: [{ from: "file", name: "Expression" }] },
      ],
      // The library runs in browsers too: nothing of Node may be imported.
      "no-restricted-imports": ["error", { patterns: ["node:*"] }],
    },
  },
  {
    // The compiler has checked their types; rules that need them too would take longer than the tests.
    files: ["test/**/*.ts"],
    extends: [tseslint.configs.strict, tseslint.configs.stylistic],
    rules: { "@typescript-eslint/array-type": ["error", { default: "array-simple" }] },
  },
);
