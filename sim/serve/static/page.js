// The page of `iotwin serve`. Its address is its state: scenario, what_if, set, seed, of. Each change
// writes the address, ends the study that is under way (its connection is closed), and asks anew.
(() => {
  "use strict";
  const PAUSE_MS = 120; // a slider that is dragged asks when it rests
  const HEIGHT = 170;
  const by = id => document.getElementById(id);
  const make = (tag, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };
  const colour = name =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  // -- The address

  const address = new URLSearchParams(location.search);
  const settings = () =>
    new Map(address.getAll("set").map(text => {
      const at = text.indexOf("=");
      return [text.slice(0, at), text.slice(at + 1)];
    }));
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
    tell(refused.mistakes.map(one => [
      one.where ? `${one.where}: ${one.message}` : one.message,
      one.given ? `, got ${one.given}` : "", one.nearest ? ` - did you mean ${one.nearest}?` : "",
      one.allowed ? ` (accepted: ${one.allowed})` : "",
    ].join("")));
    return null;
  };
  const tell = mistakes => by("mistakes").replaceChildren(...mistakes.map(text => make("li", {}, text)));
  const say = (text, isRunning) => {
    by("status").textContent = text;
    by("toggle").textContent = isRunning ? "Stop" : "Run";
    by("progress").hidden = !isRunning;
  };

  // -- What can be moved

  const sliderOf = (one, number) => {
    const id = `slider${number}`;
    const range = make("input", { type: "range", id, min: 0, max: one.positions.length - 1, value: one.now });
    const text = make("input", { type: "text", value: one.positions[one.now], id: `${id}-text` });
    const row = make("div", { className: "slider" },
      make("label", { htmlFor: id }, one.name), text, range,
      make("p", { className: "hint", id: `${id}-hint` },
        `${one.doc}. ${one.positions[0]} to ${one.positions.at(-1)}, ${one.scale}; ${one.source}`));
    const own = one.positions[one.own];
    range.setAttribute("aria-describedby", `${id}-hint`);
    text.setAttribute("aria-label", `${one.group} ${one.name}, typed`);
    const show = value => {
      range.setAttribute("aria-valuetext", value);
      row.classList.toggle("moved", value !== own);
    };
    const move = value => {
      const set = settings();
      if (value === own) set.delete(one.path);
      else set.set(one.path, value);
      put("set", [...set].map(([path, said]) => `${path}=${said}`));
      show(value);
      study();
    };
    range.addEventListener("input", () => {
      text.value = one.positions[range.value];
      move(text.value);
    });
    text.addEventListener("change", () => {
      const at = one.positions.indexOf(text.value.trim());
      if (at >= 0) range.value = at;
      move(text.value.trim());
    });
    show(one.positions[one.now]);
    return row;
  };

  const buildSliders = controls => {
    const groups = new Map();
    controls.forEach((one, number) => {
      const group = groups.get(one.group) ?? [];
      groups.set(one.group, [...group, sliderOf(one, number)]);
    });
    by("sliders").replaceChildren(...[...groups].map(([name, rows]) => {
      const isNarrow = innerWidth < 900; // then the results are below the sliders
      const open = name === controls[0].group || (!isNarrow && /^(process |machine$)/.test(name));
      return make("details", { open }, make("summary", {}, name), ...rows);
    }));
  };

  const buildWhatIfs = (whatIfs, chosen) => {
    const boxes = whatIfs.map(one => {
      const box = make("input", { type: "checkbox", value: one.name, checked: chosen.includes(one.name), id: `what-if-${one.name}` });
      box.addEventListener("change", () => {
        put("what_if", [...by("what_ifs").querySelectorAll(":checked")].map(other => other.value));
        load();
      });
      return make("label", { title: one.doc }, box, ` ${one.title}`);
    });
    by("what_ifs").replaceChildren(make("legend", {}, "What if"), ...boxes);
    by("what_ifs").hidden = !boxes.length;
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
    buildWhatIfs(found.what_ifs, address.getAll("what_if"));
    buildSliders(found.controls);
    by("controls").hidden = false;
    if (focused) by(focused)?.focus();
    study();
  };

  // -- Lines over time: those of this study, and dashed those of the last one whose first run was done

  const CHARTS = [
    { title: "Load average (1 minute)", unit: "tasks", lines: () => [["load", one => one.load1]] },
    { title: "CPU time", unit: "%", top: 100, lines: () =>
      ["user", "system", "iowait", "steal"].map(name => [name, one => one.cpu[name]]) },
    { title: "Disk busy (%util)", unit: "%", top: 100, lines: disks =>
      disks.map(name => [name, one => one.disks[name]?.util_pct]) },
    { title: "Time of a request (await)", unit: "ms", lines: disks =>
      disks.map(name => [name, one => one.disks[name]?.await_ms]) },
  ];
  let plots = [], now = { readings: [] }, before = { readings: [] };

  const axis = more => ({
    stroke: () => colour("ink"), font: "11px system-ui, sans-serif",
    grid: { stroke: () => colour("rule"), width: 1 }, ticks: { show: false }, ...more,
  });
  const plotOf = (chart, place) => {
    const lines = chart.lines(now.devices);
    const series = (name, number, more) => ({
      label: name, stroke: () => colour(`c${number % 4}`), width: 1.5, points: { show: false },
      value: (_plot, value) => (value == null ? "-" : `${value.toFixed(1)} ${chart.unit}`), ...more,
    });
    const plot = new uPlot({
      width: place.clientWidth, height: HEIGHT, cursor: { drag: { x: false, y: false } },
      scales: { x: { time: false }, y: { range: (_plot, _low, high) => [0, chart.top ?? Math.max(1.1 * high, 1)] } },
      axes: [axis({ values: (_plot, splits) => splits.map(t => `${t} s`), size: 28 }), axis({ size: 46 })],
      series: [
        { label: "time", value: (_plot, t) => (t == null ? "-" : `${t.toFixed(0)} s`) },
        ...lines.map(([name], number) => series(name, number)),
        ...lines.map(([name], number) => series(`${name} before`, number, { dash: [4, 4], width: 1, class: "before" })),
      ],
    }, [[]], place);
    plot.root.querySelector(".u-legend").setAttribute("aria-live", "polite");
    place.setAttribute("role", "group");
    place.setAttribute("aria-label", `${chart.title}; the arrow keys show the values of a moment`);
    place.addEventListener("keydown", event => {
      const last = plot.data[0].length - 1, at = plot.cursor.idx ?? -1;
      const next = { ArrowRight: Math.min(at + 1, last), ArrowLeft: Math.max(at - 1, 0), Home: 0, End: last }[event.key];
      if (next === undefined || last < 0) return;
      plot.setCursor({ left: plot.valToPos(plot.data[0][next], "x"), top: HEIGHT / 3 });
      event.preventDefault();
    });
    return { plot, place, lines };
  };
  const buildCharts = () => {
    plots.forEach(({ plot }) => plot.destroy());
    const shown = CHARTS.filter(chart => chart.lines(now.devices).length);
    const places = shown.map(() => make("div", { tabIndex: 0 }));
    by("charts").replaceChildren(...shown.map((chart, number) =>
      make("figure", {}, make("figcaption", {}, `${chart.title}, ${chart.unit}`), places[number])));
    // Only when all stand is it known how wide each is.
    plots = shown.map((chart, number) => plotOf(chart, places[number]));
  };
  let isDrawing = false;
  const draw = () => {
    if (isDrawing) return;
    isDrawing = true;
    requestAnimationFrame(() => {
      isDrawing = false;
      const longer = now.readings.length < before.readings.length ? before : now;
      const times = longer.readings.map(one => one.t_s);
      const column = (readings, of) => times.map((_t, at) => (readings[at] ? of(readings[at]) ?? null : null));
      plots.forEach(({ plot, lines }) => plot.setData([
        times,
        ...lines.map(([, of]) => column(now.readings, of)),
        ...lines.map(([, of]) => column(before.readings, of)),
      ]));
    });
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    plots.forEach(({ plot }) => plot.redraw(false)));
  new ResizeObserver(() => plots.forEach(({ plot, place }) => {
    if (place.clientWidth && place.clientWidth !== plot.width)
      plot.setSize({ width: place.clientWidth, height: HEIGHT });
  })).observe(document.body);

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
      const isNew = `${now.devices}` !== `${event.devices}`;
      now = { ...event, readings: [] };
      if (isNew) buildCharts();
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
      levels(event.levels);
    },
    end: event => say(`${event.text[0].toUpperCase()}${event.text.slice(1)}.`, false),
  };
  const runs = number => `${number} ${Number(number) === 1 ? "run" : "runs"}`;
  const cell = (text, className) => make("td", { className }, text);
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
  const levels = judged => {
    by("levels").hidden = !judged.length;
    by("levels").tBodies[0].replaceChildren(...judged.map(one => make("tr", {},
      make("th", { scope: "row" }, one.level), cell(one.verdict, one.verdict.replace(" ", "-")), cell(one.n, "number"))));
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
