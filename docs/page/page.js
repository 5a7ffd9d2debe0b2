// The twin in a browser. The page's address is its state: preset, or lab; seed, what_if, set. The
// base is the address without what_if and set; it runs once and is kept. A change runs beside it.
// Python is in a worker (worker.mjs). One works, another waits, so that Stop costs nothing.
(() => {
  "use strict";
  const PAUSE_MS = 200; // a slider that is dragged asks when it rests
  const FIRST = "storm";
  const { by, make, cell } = parts;

  // -- Whether this can work at all

  const unfit = () => {
    if (location.protocol === "file:")
      return "A browser runs this page only from a server: in its folder type python3 -m http.server, and open http://127.0.0.1:8000/.";
    if (typeof WebAssembly !== "object")
      return "This browser has no WebAssembly, or it is switched off: open the page in a current Firefox, Chrome, Edge or Safari.";
    if (typeof Worker !== "function")
      return "This browser has no workers, or they are switched off: open the page in a current Firefox, Chrome, Edge or Safari.";
    return "";
  };
  const refuse = text => {
    by("unfit").textContent = text;
    by("unfit").hidden = false;
    by("state").hidden = true;
  };
  if (unfit()) return refuse(unfit());

  // -- Python, in workers

  class Ended extends Error {}

  class Python {
    constructor() {
      this.asked = new Map(); // id -> what to do with answers
      this.count = 0;
      this.worker = new Worker("worker.mjs", { type: "module" });
      this.isReady = false;
      this.ready = new Promise((resolve, reject) => {
        this.worker.addEventListener("message", ({ data }) => {
          if (data.starting) {
            if (by("began").disabled) say(`${data.starting} ...`, null); // the first of all
          } else if (data.ready) resolve(this.isReady = true);
          else if (data.broken) reject(new Error(data.broken));
          else if (data.id) this.hear(data);
        });
        this.worker.addEventListener("error", event => {
          event.preventDefault();
          reject(new Error(event.message || "the worker did not start"));
        });
      });
      this.ready.catch(() => {});
    }
    hear({ id, event, answer, failed }) {
      const waiting = this.asked.get(id);
      if (event) return waiting.told(event);
      this.asked.delete(id);
      if (failed) waiting.reject(new Error(failed));
      else waiting.resolve(answer);
    }
    ask(what, asked, told) {
      return new Promise((resolve, reject) => {
        const id = ++this.count;
        this.asked.set(id, { resolve, reject, told });
        this.worker.postMessage({ id, what, asked });
      });
    }
    end() {
      this.worker.terminate();
      this.asked.forEach(({ reject }) => reject(new Ended()));
    }
  }

  const desk = {
    working: null,
    waiting: null,
    // End what is under way; the one that waits takes over.
    change() {
      this.working?.end();
      this.working = this.waiting ?? new Python();
      this.waiting = null;
      this.keepSpare();
    },
    async keepSpare() {
      await this.working.ready;
      this.waiting ??= new Python();
    },
    get isBusy() { return this.working.asked.size > 0; },
    get hasSpare() { return this.waiting?.isReady ?? false; },
  };

  // A question, answered by whoever works; null if something is wrong with it, which is told.
  const ask = async (what, asked = {}, told = () => {}) => {
    const answer = await desk.working.ask(what, asked, told);
    tell((answer.mistakes ?? []).map(parts.mistakeText));
    return answer.mistakes ? null : answer;
  };

  const tell = mistakes => by("mistakes").replaceChildren(...mistakes.map(text => make("li", {}, text)));
  // share: of what runs, null if nobody knows, undefined if nothing runs.
  let isUnderWay = false;
  const say = (text, share) => {
    isUnderWay = share !== undefined;
    by("status").textContent = text;
    by("toggle").textContent = isUnderWay ? "Stop" : "Run";
    by("progress").hidden = !isUnderWay;
    if (share == null) by("progress").removeAttribute("value");
    else by("progress").value = share;
  };

  // What is begun last counts: each piece of work looks whether it is still wanted.
  let turn = 0;
  const begin = () => {
    const mine = ++turn;
    if (desk.isBusy && desk.hasSpare) desk.change();
    return () => mine === turn;
  };
  const guarded = async work => {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Ended)) say(`That failed: ${error.message}`, undefined);
    }
  };

  // -- The address

  const address = new URLSearchParams(location.search);
  const write = () => history.replaceState(null, "", `?${address}`);
  const put = (key, values) => {
    address.delete(key);
    values.forEach(value => address.append(key, value));
    write();
  };
  const isLab = () => address.has("lab");
  const baseAddress = () => {
    const found = new URLSearchParams(address);
    ["what_if", "set"].forEach(key => found.delete(key));
    return `${found}`;
  };

  // -- What can be moved

  let pause = 0;
  const moved = (path, value, own) => {
    const set = parts.settings(address);
    if (value === own) set.delete(path);
    else set.set(path, value);
    put("set", [...set].map(([key, said]) => `${key}=${said}`));
    clearTimeout(pause);
    pause = setTimeout(runAgain, PAUSE_MS);
  };
  const chosen = names => {
    put("what_if", names);
    load();
  };

  const load = () => guarded(async () => {
    const isMine = begin();
    clearTimeout(pause);
    const focused = document.activeElement?.id;
    const found = await ask("controls", { address: `${address}` });
    if (!isMine()) return;
    if (!found) return say("The address asks for what is not there. Choose a server to begin anew.");
    by("began").value = isLab() ? `lab=${address.get("lab")}` : `preset=${address.get("preset")}`;
    by("title").textContent = found.title;
    by("doc").textContent = docs.get(by("began").value) ?? "";
    by("seed").value = found.seed;
    document.title = `iotwin: ${found.title}`;
    parts.buildWhatIfs(by("what_ifs"), found.what_ifs, address.getAll("what_if"), chosen);
    parts.buildSliders(by("sliders"), found.controls, moved);
    by("controls").hidden = by("results").hidden = false;
    if (focused) by(focused)?.focus();
    await run(isMine);
  });

  // -- Runs: the base once, and what is changed beside it

  const bases = new Map(); // address -> run
  const charts = parts.chartsIn(by("charts"), "of the base");

  const simulate = async (asked, others, label, isMine) => {
    const readings = [];
    const draw = () => isMine() && charts.draw(readings, others);
    const done = await ask("run", { address: asked }, event => {
      // Also of a run that is not wanted any more: the base is kept, and drawn whole later.
      if (event.event !== "begin") readings.push(event);
      if (!isMine()) return;
      if (event.event === "begin") charts.show(event.devices);
      else {
        say(`${label} runs: ${event.t_s.toFixed(0)} s of the server's time ...`, event.share);
      }
      draw();
    });
    return done && { ...done, readings };
  };

  const run = async isMine => {
    const began = performance.now();
    const key = baseAddress();
    let base = bases.get(key), changed = null;
    if (!base) {
      show(null, null);
      say("The base runs ...", 0);
      base = await simulate(key, [], "The base", isMine);
      if (base) bases.set(key, base);
    }
    if (!isMine()) return;
    if (!base) return say("Not run.");
    const isChanged = `${address}` !== key;
    by("lines").textContent = isChanged
      ? "Lines: the changed server. Dashed: the base." : "Lines: the base. Change something, and it stays as dashed lines.";
    show(base, null);
    charts.show(base.devices);
    if (isChanged) {
      say("The changed server runs ...", 0);
      const isSame = other => `${other.devices}` === `${base.devices}`;
      changed = await simulate(`${address}`, base.readings, "The changed server", isMine);
      if (!isMine()) return;
      if (!changed) return say("Not run.");
      show(base, changed);
      charts.draw(changed.readings, isSame(changed) ? base.readings : []);
    } else {
      charts.draw(base.readings, []);
    }
    say(`Done after ${((performance.now() - began) / 1000).toFixed(1)} s. Move a slider, or choose a what-if.`);
  };
  const runAgain = () => guarded(() => run(begin()));

  const percent = (from, to) => {
    if (from === undefined || to === undefined || from === 0) return "";
    const change = (100 * (to - from)) / Math.abs(from);
    return `${change >= 0 ? "+" : "−"}${Math.abs(change).toFixed(Math.abs(change) < 10 ? 1 : 0)} %`;
  };

  const show = (base, changed) => {
    for (const [id, one] of [["base", base], ["changed", changed]]) {
      const place = by(id);
      place.hidden = !one;
      if (!one) continue;
      place.querySelector(".command").textContent = `${one.command} --json -`;
      place.querySelector(".digest").textContent = one.digest;
      place.querySelector(".iostat").textContent = one.iostat;
    }
    by("figures").hidden = !base;
    if (!base) return;
    const names = new Set([...Object.keys(base.figures), ...Object.keys(changed?.figures ?? {})]);
    by("figures").caption.textContent = `${(changed ?? base).part}.`;
    by("figures").tBodies[0].replaceChildren(...[...names].map(name => {
      const was = base.figures[name], is = changed?.figures[name];
      return make("tr", {}, make("th", { scope: "row" }, name), cell((is ?? was).unit),
        cell(was?.mean ?? "", "number"), cell(is?.mean ?? "", "number"),
        cell(percent(base.values[name], changed?.values[name]), "number"));
    }));
  };

  // -- Labs

  let lab = null;
  const openLab = () => guarded(async () => {
    lab = null;
    by("lab").hidden = true;
    if (!isLab()) return;
    const wanted = `${address}`;
    const found = await ask("lab", { name: address.get("lab"), seed: address.get("seed") ?? "" });
    if (!found || `${address}` !== wanted) return;
    lab = found;
    by("lab-title").textContent = `Lab ${lab.name}: ${lab.title}`;
    by("lab-question").textContent = lab.question;
    by("lab-commands").textContent = lab.commands.join("\n");
    by("tasks").replaceChildren(...lab.tasks.map(taskOf));
    by("designs").textContent = lab.designs
      ? "The lab's design task is not asked here: save the sheet and go on with iotwin lab check." : "";
    by("score").textContent = by("told").textContent = "";
    by("sheet").hidden = true;
    by("lab").hidden = false;
  });
  const KINDS = { read: "Read", predict: "Predict" };
  const taskOf = task => {
    const id = `task-${task.name}`;
    const input = make("input", { type: "text", id, name: task.name, size: 16 });
    input.setAttribute("aria-describedby", `${id}-mark`);
    return make("div", { className: "task" },
      make("label", { htmlFor: id }, make("strong", {}, `${KINDS[task.kind]}, ${points(task.points)}: `), task.question),
      input, make("p", { className: "mark", id: `${id}-mark` }));
  };
  const points = number => `${number} ${number === 1 ? "point" : "points"}`;
  const check = shows => guarded(async () => {
    if (!lab) return;
    const mine = lab;
    const isMine = begin();
    say("The answers are checked ...", 0);
    const answers = Object.fromEntries(lab.tasks.map(task => [task.name, by(`task-${task.name}`).value.trim()]));
    const found = await ask("check", { text: lab.text, answers, shows }, ({ share }) =>
      isMine() && say("The answers are checked by runs ...", share));
    if (!isMine() || mine !== lab) return;
    if (!found) return say("Not checked.");
    lab.text = found.text;
    found.marks.forEach(one => {
      const place = by(`task-${one.name}-mark`);
      place.className = `mark ${one.status}`;
      const grade = one.status === "--" ? "" : `${one.status}, ${one.points} of ${points(one.most)}`;
      const told = [grade, one.told].filter(Boolean).join(": ");
      const stop = !told || /[.?!]$/.test(told) ? "" : ".";
      place.textContent = `${told}${stop} ${one.answer && `Right: ${one.answer}.`}`.trim();
      const isKept = shows && lab.tasks.some(task => task.name === one.name && task.kind === "predict");
      if (isKept) by(`task-${one.name}`).readOnly = true;
    });
    by("score").textContent = `Score: ${found.score} of ${found.most}.`;
    by("told").textContent = found.told;
    by("sheet").href = URL.createObjectURL(new Blob([found.text], { type: "application/toml" }));
    by("sheet").download = `${lab.name}-${address.get("seed")}.toml`;
    by("sheet").hidden = false;
    say("Checked.");
  });
  by("blanks").addEventListener("submit", event => {
    event.preventDefault();
    check(false);
  });
  by("answers").addEventListener("click", () => check(true));

  // -- What stays when the server changes

  const docs = new Map(); // what is chosen -> what it is about
  by("began").addEventListener("change", () => {
    [...address.keys()].forEach(key => address.delete(key));
    const [kind, name] = by("began").value.split("=");
    put(kind, [name]);
    if (kind === "lab") put("seed", ["1"]);
    tell([]);
    openLab();
    load();
  });
  by("seed").addEventListener("change", () => {
    put("seed", by("seed").value.trim() ? [by("seed").value.trim()] : isLab() ? ["1"] : []);
    if (isLab()) openLab();
    load();
  });
  by("reset").addEventListener("click", () => {
    ["what_if", "set"].forEach(key => put(key, []));
    load();
  });
  by("toggle").addEventListener("click", () => {
    if (!isUnderWay) return runAgain();
    turn += 1;
    desk.change();
    say("Stopped.");
  });

  // -- The beginning

  const start = async () => {
    by("state").hidden = false;
    say("Python starts in this browser, which takes some seconds ...", null);
    desk.working = new Python();
    try {
      await desk.working.ready;
    } catch (error) {
      return refuse(`Python did not start in this browser (${error.message}): reload the page, or open it in a current Firefox, Chrome, Edge or Safari.`);
    }
    const found = await ask("presets");
    const option = (kind, one) => {
      docs.set(`${kind}=${one.name}`, one.doc ?? "");
      return make("option", { value: `${kind}=${one.name}` }, one.title);
    };
    const group = (label, kind, all) =>
      make("optgroup", { label }, ...all.map(one => option(kind, one)));
    by("began").replaceChildren(
      group("Servers", "preset", found.presets), group("Labs", "lab", found.labs));
    by("began").disabled = by("toggle").hidden = false;
    desk.keepSpare();
    if (!address.has("preset") && !isLab()) put("preset", [FIRST]);
    await openLab();
    await load();
  };
  start();
})();
