import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist", "build", "build-node", "node_modules"] },
  {
    files: ["src/**/*.ts", "test/**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { project: "./tsconfig.test.json" } },
    rules: {
      "@typescript-eslint/array-type": ["error", { default: "array-simple" }],
      "@typescript-eslint/restrict-template-expressions": [
        "error",
        // A reference in a text becomes a template: that is what it is for.
        { allowNumber: true, allow: [{ from: "file", name: "Expression" }] },
      ],
    },
  },
  {
    // node:test returns a promise from test() that the runner awaits itself.
    files: ["test/**/*.ts"],
    rules: { "@typescript-eslint/no-floating-promises": "off" },
  },
  {
    // The library runs in browsers too: nothing of Node may be imported.
    files: ["src/**/*.ts"],
    rules: { "no-restricted-imports": ["error", { patterns: ["node:*"] }] },
  },
);
