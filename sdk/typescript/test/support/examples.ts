/** Finds the examples of the library: in its doc comments, in its README and in the pages of docs. */

import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import ts from "typescript";

export interface Example {
  /** Where it is, for people. */
  name: string;
  code: string;
}

/** The blocks of a page. */
export function pageExamples(file: string): Example[] {
  const blocks = [...readFileSync(file, "utf8").matchAll(/^```ts\n(.*?)^```$/gms)];
  return blocks.map(([, code = ""], i) => ({ name: `${basename(file)}, block ${i + 1}`, code }));
}

/** The blocks of all pages in a folder, without those that are in `known`. */
export function folderExamples(folder: string, known: Example[]): Example[] {
  const pages = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".md"));
  const codes = new Set(known.map((example) => example.code));
  return pages.flatMap((page) => pageExamples(join(folder, page))).filter((example) => !codes.has(example.code));
}

/** The blocks of all doc comments in a folder. */
export function docExamples(folder: string): Example[] {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  return files.flatMap((file) => {
    const text = readFileSync(join(folder, file), "utf8");
    const blocks = [...text.matchAll(/^( *)\* ```ts\n(.*?)^ *\* ```$/gms)];
    return blocks.map((block) => ({
      name: `${file}:${text.slice(0, block.index).split("\n").length}`,
      code: (block[2] ?? "").replace(/^ *\* ?/gm, ""),
    }));
  });
}

/** What is exported without a doc comment, or without an example where it should have one. */
export function undocumented(index: string): string[] {
  const program = ts.createProgram([index], { module: ts.ModuleKind.NodeNext, noLib: true, types: [] });
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(index);
  const module = source && checker.getSymbolAtLocation(source);
  if (module === undefined) throw new Error(`cannot read ${index}`);
  return checker.getExportsOfModule(module).flatMap((exported) => {
    const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
    const [declaration] = symbol.declarations ?? [];
    // Generated types say what docs/openapi.yaml says of them.
    if (declaration === undefined || declaration.getSourceFile().fileName.endsWith("wire.ts")) return [];
    return faultsOf(exported.name, declaration);
  });
}

function faultsOf(name: string, declaration: ts.Declaration): string[] {
  const faults = hasDoc(declaration) ? [] : [`${name} has no doc comment`];
  if (ts.isFunctionDeclaration(declaration) && !hasExample(declaration)) faults.push(`${name} has no example`);
  if (ts.isClassDeclaration(declaration)) faults.push(...classFaults(name, declaration));
  if (ts.isVariableDeclaration(declaration) && declaration.initializer !== undefined) {
    if (ts.isObjectLiteralExpression(declaration.initializer)) {
      const members = declaration.initializer.properties;
      faults.push(
        ...members.filter((m) => !hasExample(m)).map((m) => `${name}.${m.name?.getText() ?? ""} has no example`),
      );
    }
  }
  return faults;
}

/** A class has an example, or all of its methods do. Errors of the table differ only by when they are thrown. */
function classFaults(name: string, declaration: ts.ClassDeclaration): string[] {
  const methods = declaration.members.filter(
    (m): m is ts.MethodDeclaration => ts.isMethodDeclaration(m) && isPublic(m),
  );
  const written = methods.filter((m) => !["toString", "toJSON"].includes(m.name.getText()));
  const silent = written.filter((m) => !hasExample(m) && !COVERED.has(`${name}.${m.name.getText()}`));
  const faults = silent.map((m) => `${name}.${m.name.getText()} has no example`);
  if (methods.length === 0 && !hasExample(declaration) && !name.endsWith("Error") && name !== "Expression") {
    faults.push(`${name} has no example`);
  }
  return faults;
}

/** Methods that others call for you; their doc comments name them. */
const COVERED = new Set(["Jobs.checkpoint", "Jobs.suspend", "Worker.handlerFailed"]);

function isPublic(member: ts.ClassElement): boolean {
  const modifiers = ts.canHaveModifiers(member) ? (ts.getModifiers(member) ?? []) : [];
  const isHidden = modifiers.some(
    (m) => m.kind === ts.SyntaxKind.PrivateKeyword || m.kind === ts.SyntaxKind.ProtectedKeyword,
  );
  if (isHidden || member.name === undefined) return false;
  return !ts.isPrivateIdentifier(member.name) && !ts.isComputedPropertyName(member.name);
}

function docOf(node: ts.Node): string {
  const host = ts.isVariableDeclaration(node) ? node.parent.parent : node;
  return ts
    .getJSDocCommentsAndTags(host)
    .map((doc) => doc.getFullText())
    .join("\n");
}

const hasDoc = (node: ts.Node): boolean => docOf(node) !== "";
const hasExample = (node: ts.Node): boolean => docOf(node).includes("@example");
