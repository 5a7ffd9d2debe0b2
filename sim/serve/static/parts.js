// What the page of `iotwin serve` and the page that runs in a browser alone (docs/page) both show:
// sliders, what-ifs, lines over time, levels. Each function fills a place and calls back.
const parts = (() => {
  "use strict";
  const HEIGHT = 170;
  const by = id => document.getElementById(id);
  const make = (tag, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };
  const cell = (text, className = "") => make("td", { className }, text);
  const colour = name =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const mistakeText = one => [
    one.where ? `${one.where}: ${one.message}` : one.message,
    one.given ? `, got ${one.given}` : "", one.nearest ? ` - did you mean ${one.nearest}?` : "",
    one.allowed ? ` (accepted: ${one.allowed})` : "",
  ].join("");

  // -- What is set in the address: path -> value

  const settings = address =>
    new Map(address.getAll("set").map(text => {
      const at = text.indexOf("=");
      return [text.slice(0, at), text.slice(at + 1)];
    }));

  // -- What can be moved. moved(path, value, own): own is what the scenario has.

  const sliderOf = (one, number, moved) => {
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
      show(value);
      moved(one.path, value, own);
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

  const buildSliders = (place, controls, moved) => {
    const groups = new Map();
    controls.forEach((one, number) => {
      const group = groups.get(one.group) ?? [];
      groups.set(one.group, [...group, sliderOf(one, number, moved)]);
    });
    place.replaceChildren(...[...groups].map(([name, rows]) => {
      const isNarrow = innerWidth < 900; // then the results are below the sliders
      const open = name === controls[0].group || (!isNarrow && /^(process |machine$)/.test(name));
      return make("details", { open }, make("summary", {}, name), ...rows);
    }));
  };

  // chosen(names): the boxes that are checked now.
  const buildWhatIfs = (place, whatIfs, checked, chosen) => {
    const boxes = whatIfs.map(one => {
      const box = make("input", { type: "checkbox", value: one.name, checked: checked.includes(one.name), id: `what-if-${one.name}` });
      box.addEventListener("change", () =>
        chosen([...place.querySelectorAll(":checked")].map(other => other.value)));
      return make("label", { title: one.doc }, box, ` ${one.title}`);
    });
    place.replaceChildren(make("legend", {}, "What if"), ...boxes);
    place.hidden = !boxes.length;
  };

  const fillLevels = (place, judged) => {
    place.hidden = !judged.length;
    place.tBodies[0].replaceChildren(...judged.map(one => make("tr", {},
      make("th", { scope: "row" }, one.level), cell(one.verdict, one.verdict.replace(" ", "-")), cell(one.n, "number"))));
  };

  // -- Lines over time, of readings: those of this run, and dashed those to compare with

  const CHARTS = [
    { title: "Load average (1 minute)", unit: "tasks", lines: () => [["load", one => one.load1]] },
    { title: "CPU time", unit: "%", top: 100, lines: () =>
      ["user", "system", "iowait", "steal"].map(name => [name, one => one.cpu[name]]) },
    { title: "Disk busy (%util)", unit: "%", top: 100, lines: disks =>
      disks.map(name => [name, one => one.disks[name]?.util_pct]) },
    { title: "Time of a request (await)", unit: "ms", lines: disks =>
      disks.map(name => [name, one => one.disks[name]?.await_ms]) },
  ];

  const axis = more => ({
    stroke: () => colour("ink"), font: "11px system-ui, sans-serif",
    grid: { stroke: () => colour("rule"), width: 1 }, ticks: { show: false }, ...more,
  });

  const plotOf = (chart, place, devices, dashed) => {
    const lines = chart.lines(devices);
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
        ...lines.map(([name], number) => series(`${name} ${dashed}`, number, { dash: [4, 4], width: 1, class: "before" })),
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

  // Charts in a place. show(devices) makes them anew; draw(readings, others) fills them, at once
  // if nothing else is to be drawn. `dashed` is what the dashed lines are called.
  const chartsIn = (place, dashed) => {
    let plots = [], devices = null, latest = null;
    const show = names => {
      if (`${names}` === devices) return;
      devices = `${names}`;
      plots.forEach(({ plot }) => plot.destroy());
      const shown = CHARTS.filter(chart => chart.lines(names).length);
      const places = shown.map(() => make("div", { tabIndex: 0 }));
      place.replaceChildren(...shown.map((chart, number) =>
        make("figure", {}, make("figcaption", {}, `${chart.title}, ${chart.unit}`), places[number])));
      // Only when all stand is it known how wide each is.
      plots = shown.map((chart, number) => plotOf(chart, places[number], names, dashed));
    };
    const draw = (readings, others) => {
      const isDrawing = latest !== null;
      latest = [readings, others];
      if (isDrawing) return;
      requestAnimationFrame(() => {
        const [now, before] = latest;
        latest = null;
        const longer = now.length < before.length ? before : now;
        const times = longer.map(one => one.t_s);
        const column = (rows, of) => times.map((_t, at) => (rows[at] ? of(rows[at]) ?? null : null));
        plots.forEach(({ plot, lines }) => plot.setData([
          times,
          ...lines.map(([, of]) => column(now, of)),
          ...lines.map(([, of]) => column(before, of)),
        ]));
      });
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
      plots.forEach(({ plot }) => plot.redraw(false)));
    new ResizeObserver(() => plots.forEach(({ plot, place: one }) => {
      if (one.clientWidth && one.clientWidth !== plot.width)
        plot.setSize({ width: one.clientWidth, height: HEIGHT });
    })).observe(document.body);
    return { show, draw };
  };

  return {
    by, make, cell, mistakeText, settings, buildSliders, buildWhatIfs, fillLevels, chartsIn,
  };
})();
