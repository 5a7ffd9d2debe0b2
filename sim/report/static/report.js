// Draws the time lines of a report with uPlot: look at a moment with the mouse or the arrow keys,
// drag to enlarge a part, Escape or a double click to see all again. Without it the page shows SVG.
(() => {
  "use strict";
  const root = document.documentElement;
  const colour = name => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const drawn = [];

  const options = (chart, width) => {
    const hasSecond = chart.lines.some(line => line.second);
    const scale = line => (line.second ? "second" : "first");
    const axis = more => ({
      stroke: () => colour("ink"), font: "11px system-ui, sans-serif",
      grid: { stroke: () => colour("rule"), width: 1 }, ticks: { show: false }, ...more,
    });
    return {
      width, height: 190, cursor: { sync: { key: "time" }, drag: { x: true, y: false } },
      scales: {
        x: { time: false },
        first: { range: [0, chart.tops[0]] },
        second: { range: [0, chart.tops[1]] },
      },
      axes: [
        axis({ values: (_plot, splits) => splits.map(t => `${t} s`), size: 28 }),
        axis({ scale: "first", size: 48 }),
        ...(hasSecond ? [axis({ scale: "second", side: 1, size: 48, grid: { show: false } })] : []),
      ],
      series: [
        { label: "time", value: (_plot, t) => (t == null ? "-" : `${t.toFixed(1)} s`) },
        ...chart.lines.map((line, number) => ({
          label: line.name, scale: scale(line), width: chart.stacked ? 0 : 1.5,
          stroke: () => colour(`c${number}`),
          fill: chart.stacked ? () => colour(`c${number}`) : undefined,
          points: { show: false },
          value: (_plot, _value, _series, at) =>
            at == null || line.values[at] == null ? "-" : `${line.values[at]} ${line.unit}`,
        })),
      ],
      bands: chart.stacked
        ? chart.lines.slice(1).map((_line, below) => ({ series: [below + 2, below + 1] })) : [],
      hooks: { drawClear: [plot => beneath(plot, chart)], draw: [plot => above(plot, chart)] },
    };
  };

  const beneath = (plot, chart) => {
    plot.ctx.fillStyle = colour("span");
    for (const [low, high] of chart.spans) {
      const from = Math.max(plot.valToPos(low, "x", true), plot.bbox.left);
      const to = Math.min(plot.valToPos(high, "x", true), plot.bbox.left + plot.bbox.width);
      if (to > from) plot.ctx.fillRect(from, plot.bbox.top, to - from, plot.bbox.height);
    }
  };

  const above = (plot, chart) => {
    const { ctx, bbox } = plot;
    const stroke = (dash, style, points) => {
      ctx.setLineDash(dash.map(one => one * devicePixelRatio));
      ctx.strokeStyle = style;
      ctx.lineWidth = devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(points[0], points[1]);
      ctx.lineTo(points[2], points[3]);
      ctx.stroke();
    };
    ctx.save();
    for (const t of chart.measured) {
      const x = plot.valToPos(t, "x", true);
      if (x >= bbox.left && x <= bbox.left + bbox.width)
        stroke([1.5, 2.5], colour("faint"), [x, bbox.top, x, bbox.top + bbox.height]);
    }
    ctx.fillStyle = colour("ink");
    ctx.textAlign = "right";
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    for (const mark of chart.marks) {
      const y = plot.valToPos(mark.height, mark.second ? "second" : "first", true);
      stroke([5, 3], colour("ink"), [bbox.left, y, bbox.left + bbox.width, y]);
      ctx.fillText(mark.words, bbox.left + bbox.width - 4, y - 4 * devicePixelRatio);
    }
    ctx.restore();
  };

  // What is drawn reaches from 0 to the common end: all charts have one scale of time.
  const columns = chart => {
    let sums = chart.times.map(() => 0);
    const heights = chart.lines.map(line => {
      if (!chart.stacked) return line.values;
      sums = sums.map((sum, at) => sum + line.values[at]);
      return sums;
    });
    const rows = [chart.times, ...heights].map(row => row.slice());
    if (rows[0].length && rows[0].at(-1) < chart.last) {
      rows[0].push(chart.last);
      rows.slice(1).forEach(row => row.push(null));
    }
    if (rows[0].length && rows[0][0] > 0) {
      rows[0].unshift(0);
      rows.slice(1).forEach(row => row.unshift(null));
      chart.lines.forEach(line => line.values.unshift(null));
    }
    return rows;
  };

  const draw = (figure, chart) => {
    const data = columns(chart);
    const place = figure.querySelector(".plot");
    const plot = new uPlot(options(chart, place.clientWidth), data, place);
    plot.root.querySelector(".u-legend").setAttribute("aria-live", "polite");
    place.tabIndex = 0;
    place.setAttribute("role", "group");
    place.setAttribute("aria-label", `${chart.title}; the arrow keys show the values of a moment`);
    place.addEventListener("keydown", event => onKey(event, plot, data[0]));
    figure.classList.add("live");
    drawn.push({ plot, place });
  };

  const onKey = (event, plot, times) => {
    const now = plot.cursor.idx ?? -1;
    const last = times.length - 1;
    const next = {
      ArrowRight: Math.min(now + 1, last), ArrowLeft: Math.max(now - 1, 0), Home: 0, End: last,
      PageDown: Math.min(now + 10, last), PageUp: Math.max(now - 10, 0),
    }[event.key];
    if (event.key === "Escape") plot.setScale("x", { min: times[0], max: times[last] });
    else if (next !== undefined) {
      const left = plot.valToPos(times[next], "x");
      plot.setCursor({ left, top: plot.over.clientHeight / 2 });
    } else return;
    event.preventDefault();
  };

  const { charts } = JSON.parse(document.getElementById("data").textContent);
  document.querySelectorAll("figure.chart").forEach((figure, number) => draw(figure, charts[number]));
  const redraw = () => drawn.forEach(({ plot }) => plot.redraw(false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  new ResizeObserver(() => drawn.forEach(({ plot, place }) => {
    if (place.clientWidth && place.clientWidth !== plot.width)
      plot.setSize({ width: place.clientWidth, height: 190 });
  })).observe(document.body);
})();
