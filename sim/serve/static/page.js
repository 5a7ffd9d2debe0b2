// The page of `iotwin serve`. Its address is its state: scenario, what_if, set, seed, of. Each change
// writes the address, ends the study that is under way (its connection is closed), and asks anew.
(() => {
  "use strict";
  const PAUSE_MS = 120; // a slider that is dragged asks when it rests
  const { by, make, cell } = parts;

  // -- The address

  const address = new URLSearchParams(location.search);
  const write = () => history.replaceState(null, "", address.size ? `?${address}` : "/");
  const put = (key, values) => {
    address.delete(key);
    values.forEach(value => address.append(key, value));
    write();
  };

  const ask = async (what, options = {}) => {
    const answer = await fetch(`/api/${what}`, options);
    if (answer.ok) return answer;
    const refused = answer.status === 400 ? await answer.json() : { mistakes: [{ message: answer.statusText }] };
    tell(refused.mistakes.map(parts.mistakeText));
    return null;
  };
  const tell = mistakes => by("mistakes").replaceChildren(...mistakes.map(text => make("li", {}, text)));
  const say = (text, isRunning) => {
    by("status").textContent = text;
    by("toggle").textContent = isRunning ? "Stop" : "Run";
    by("progress").hidden = !isRunning;
  };

  // -- What can be moved

  const moved = (path, value, own) => {
    const set = parts.settings(address);
    if (value === own) set.delete(path);
    else set.set(path, value);
    put("set", [...set].map(([key, said]) => `${key}=${said}`));
    study();
  };
  const chosen = names => {
    put("what_if", names);
    load();
  };

  const load = async () => {
    stop();
    by("state").hidden = by("results").hidden = !address.get("scenario");
    by("controls").hidden = true;
    if (!address.get("scenario")) return;
    const focused = document.activeElement?.id;
    const answer = await ask(`controls?${address}`);
    if (!answer) return say("The address asks for what is not there. Choose a scenario to begin anew.", false);
    const found = await answer.json();
    document.title = `iotwin: ${found.title}`;
    by("scenario").value = found.scenario;
    by("title").textContent = found.title;
    by("doc").textContent = found.doc;
    by("seed").value = found.seed;
    by("of").replaceChildren(...found.figures.map(name => make("option", {}, name)));
    by("of").value = found.figure;
    parts.buildWhatIfs(by("what_ifs"), found.what_ifs, address.getAll("what_if"), chosen);
    parts.buildSliders(by("sliders"), found.controls, moved);
    by("controls").hidden = false;
    if (focused) by(focused)?.focus();
    study();
  };

  // -- Lines over time: those of this study, and dashed those of the last one whose first run was done

  const charts = parts.chartsIn(by("charts"), "before");
  let now = { readings: [] }, before = { readings: [] };
  const draw = () => charts.draw(now.readings, before.readings);

  // -- A study

  let running = null, waiting = 0;
  const stop = () => {
    clearTimeout(waiting);
    running?.abort();
    running = null;
  };
  const study = () => {
    stop();
    waiting = setTimeout(run, PAUSE_MS);
  };
  const run = async () => {
    const mine = (running = new AbortController());
    tell([]);
    say("Starting ...", true);
    try {
      const answer = await ask(`study?${address}`, { signal: mine.signal });
      if (!answer) return say("Not run.", false);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = "", part; !(part = await reader.read()).done; ) {
        const lines = (rest + part.value).split("\n");
        rest = lines.pop();
        lines.map(line => JSON.parse(line)).forEach(event => on[event.event](event));
      }
    } catch (error) {
      if (mine.signal.aborted) return;
      say(`The server has ended: ${error.message}`, false);
    }
    if (running === mine) running = null;
  };
  const on = {
    begin: event => {
      if (now.figures) before = now;
      if (before.interval_s !== event.interval_s || `${before.devices}` !== `${event.devices}`)
        before = { readings: [], figures: before.figures };
      now = { ...event, readings: [] };
      charts.show(event.devices);
      by("command").textContent = event.command;
      by("progress").value = 0;
      say(`First run of ${event.label} ...`, true);
      draw();
    },
    reading: event => {
      now.readings.push(event);
      by("progress").value = event.share;
      draw();
    },
    figures: event => {
      now.figures = event.figures;
      by("progress").value = event.runs / now.runs_max;
      say(`${runs(event.runs)} done; more follow until ${now.wanted}; ${now.runs_max} at most.`, true);
      table(event);
      parts.fillLevels(by("levels"), event.levels);
    },
    end: event => say(`${event.text[0].toUpperCase()}${event.text.slice(1)}.`, false),
  };
  const runs = number => `${number} ${Number(number) === 1 ? "run" : "runs"}`;
  const table = event => {
    by("figures").hidden = false;
    by("figures").caption.textContent = `${event.part}. Intervals of fewer than three runs are not known.`;
    by("figures").tBodies[0].replaceChildren(...Object.entries(event.figures).map(([name, one]) => {
      const was = before.figures?.[name];
      return make("tr", { className: name === now.figure ? "chosen" : "" },
        make("th", { scope: "row" }, name), cell(one.mean, "number"), cell(one.unit),
        cell(one.interval, "number"), cell(one.range, "number"), cell(one.runs, "number"),
        cell(was ? `${was.mean} (${runs(was.runs)})` : "", "number"));
    }));
  };

  // -- What stays when the scenario changes

  by("scenario").addEventListener("change", () => {
    [...address.keys()].forEach(key => address.delete(key));
    put("scenario", by("scenario").value ? [by("scenario").value] : []);
    tell([]);
    load();
  });
  by("seed").addEventListener("change", () => {
    put("seed", by("seed").value.trim() ? [by("seed").value.trim()] : []);
    study();
  });
  by("of").addEventListener("change", () => {
    put("of", [by("of").value]);
    study();
  });
  by("reset").addEventListener("click", () => {
    ["what_if", "set", "seed"].forEach(key => put(key, []));
    load();
  });
  by("toggle").addEventListener("click", () => {
    if (!running) return study();
    stop();
    say("Stopped.", false);
  });
  (async () => {
    const answer = await ask("scenarios");
    if (!answer) return;
    const { titles } = await answer.json();
    by("scenario").append(...Object.entries(titles).map(([name, title]) =>
      make("option", { value: name }, `${name}: ${title}`)));
    load();
  })();
})();
