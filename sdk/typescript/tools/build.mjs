// Compiles the library into dist, and its tests, unless they were made of the same sources. Needs npm ci before.
import { useMade } from "../../../tools/alone.mjs";
import { compile, HERE, isCompiled } from "./compile.mjs";

try {
  useMade(
    HERE,
    isCompiled,
    () => compile(process.execPath),
    () => undefined,
  );
} catch (failed) {
  if (failed.status === undefined) throw failed;
  process.exit(failed.status);
}
