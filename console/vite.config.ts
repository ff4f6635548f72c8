import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "./", // works behind any path prefix; the page's <base> says where the files are
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0, // the content security policy allows no inline code
    reportCompressedSize: false,
  },
  test: { include: ["test/**/*.test.ts"], testTimeout: 60_000 },
});
