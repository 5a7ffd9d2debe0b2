// Run bytecode.py in Pyodide: node bytecode.mjs PYODIDE bytecode.py TWIN.zip STDLIB.zip
// Both archives are written again, with bytecode in them.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, script, twin, stdlib] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(join(folder, "pyodide.mjs")).href);
const python = await loadPyodide({ indexURL: folder });
python.runPython(readFileSync(script, "utf8"));
const compileZip = python.globals.get("compile_zip");
const rewrite = (path, top, keepsSources) => {
  python.FS.writeFile("/old.zip", readFileSync(path));
  const count = compileZip.callKwargs("/old.zip", "/new.zip", top, { keeps_sources: keepsSources });
  writeFileSync(path, python.FS.readFile("/new.zip"));
  return count;
};
const own = rewrite(twin, "/twin", true);
console.log(own + rewrite(stdlib, "/lib/python314.zip", false));
