// Python and the twin, in a thread of their own. A message {id, what, asked} is a question to
// sim/serve/browser.py; what comes back are {id, event} meanwhile and {id, answer} or {id, failed}.
// {starting} and {ready} tell how far Python is.
const begin = async () => {
  postMessage({ starting: "Python is loaded" });
  const [{ loadPyodide }, twin] = await Promise.all([
    import("./pyodide/pyodide.mjs"),
    fetch("twin.zip").then(answer => {
      if (!answer.ok) throw new Error(`twin.zip: ${answer.status} ${answer.statusText}`);
      return answer.arrayBuffer();
    }),
  ]);
  const python = await loadPyodide({ indexURL: new URL("pyodide/", import.meta.url).href });
  postMessage({ starting: "The twin is unpacked" });
  python.unpackArchive(twin, "zip", { extractDir: "/twin" });
  python.runPython("import sys; sys.path.insert(0, '/twin')");
  postMessage({ starting: "The twin is read" });
  return python.pyimport("sim.serve.browser");
};

const twin = begin();
twin.then(
  () => postMessage({ ready: true }),
  error => postMessage({ broken: error.message }),
);

addEventListener("message", async ({ data: { id, what, asked } }) => {
  const page = await twin;
  try {
    const tell = text => postMessage({ id, event: JSON.parse(text) });
    postMessage({ id, answer: JSON.parse(page.answer(what, JSON.stringify(asked), tell)) });
  } catch (error) {
    postMessage({ id, failed: error.message.trim().split("\n").at(-1) });
  }
});
