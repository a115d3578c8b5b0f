"use strict";
(() => {
  const read = id => JSON.parse(document.getElementById(id).textContent);
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const color = name => getComputedStyle(root).getPropertyValue(name).trim();
  const figures = read("figures");
  const isTouched = matchMedia("(pointer: coarse)").matches;
  const config = { responsive: true, displayModeBar: false };

  // Plots: their colors are those of the theme.
  const themed = figure => {
    const axis = { gridcolor: color("--grid"), linecolor: color("--line"), zerolinecolor: color("--line") };
    const layout = {
      ...figure.layout,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: color("--ink"), family: getComputedStyle(document.body).fontFamily, size: 12 },
      hoverlabel: { bgcolor: color("--card"), bordercolor: color("--line"), font: { color: color("--ink") }, align: "left" },
    };
    for (const name of ["xaxis", "yaxis"]) if (layout[name]) layout[name] = { ...layout[name], ...axis };
    // the legend of a narrow page has one line per series
    if (innerWidth < 600 && layout.showlegend) layout.height += 16 * figure.data.length;
    if (isTouched) layout.dragmode = false; // a finger scrolls the page
    return layout;
  };
  const data = figure => figure.data.map(one =>
    one.type === "treemap" ? { ...one, marker: { ...one.marker, line: { width: 1, color: color("--card") } } } : one);
  const draw = () => {
    for (const [name, figure] of Object.entries(figures)) {
      const element = document.getElementById(name);
      if (element) Plotly.react(element, data(figure), themed(figure), config);
    }
  };
  const setTheme = theme => {
    root.dataset.theme = theme;
    draw();
  };
  document.getElementById("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
  system.addEventListener("change", () => setTheme(system.matches ? "dark" : "light"));

  // Tables: rows are searched, sorted and shown in parts here, because there may be thousands.
  const SHOWN = 25;
  const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB"];
  const size = value => {
    if (value < 1024) return `${Math.round(value)} B`;
    let unit = -1;
    while (value >= 1024 && unit < UNITS.length - 1) { value /= 1024; unit += 1; }
    return `${value.toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 })} ${UNITS[unit]}`;
  };
  const duration = value => {
    if (value < 1000) return `${value} ms`;
    for (const [name, length] of [["days", 864e5], ["h", 36e5], ["min", 6e4], ["s", 1e3]])
      if (value >= length) return `${(value / length).toFixed(1)} ${name}`;
  };
  const SHOW = {
    text: value => value,
    word: value => value,
    count: value => typeof value === "number" ? value.toLocaleString("en-US") : value,
    number: value => value.toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 }),
    size,
    duration,
    ratio: value => value.toFixed(2),
    time: value => new Date(value).toISOString().slice(0, 19).replace("T", " "),
    share: value => `${(value * 100).toFixed(1)}%`,
  };
  const isText = kind => kind === "text" || kind === "word";
  const shown = (kind, value) => value === null ? "-" : SHOW[kind](value);
  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  };

  const table = (place, { columns, rows, omitted }) => {
    let page = 0, sorted = -1, falling = false, found = rows;
    const search = make("input", { type: "search", placeholder: "search", ariaLabel: "Search the table" });
    const state = make("span");
    const before = make("button", { type: "button", textContent: "‹", ariaLabel: "Previous rows" });
    const after = make("button", { type: "button", textContent: "›", ariaLabel: "Next rows" });
    const body = make("tbody");
    const heads = columns.map(({ name, kind }, index) => {
      const button = make("button", { type: "button", textContent: name });
      button.addEventListener("click", () => {
        falling = sorted === index ? !falling : !isText(kind);
        sorted = index;
        update();
      });
      return make("th", { className: isText(kind) ? kind : "", scope: "col" }, button);
    });
    const update = (first = 0) => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const matches = row => {
        const text = row.map((value, index) => shown(columns[index].kind, value)).join(" ").toLowerCase();
        return words.every(word => text.includes(word));
      };
      found = words.length ? rows.filter(matches) : [...rows];
      if (sorted >= 0) found.sort((a, b) => {
        // what is unknown stays at the end
        const isUnknown = a[sorted] === null || b[sorted] === null;
        return (falling && !isUnknown ? -1 : 1) * compare(a[sorted], b[sorted]);
      });
      heads.forEach((head, index) => { head.ariaSort = index === sorted ? (falling ? "descending" : "ascending") : "none"; });
      page = first;
      render();
    };
    const render = () => {
      const part = found.slice(page, page + SHOWN);
      body.replaceChildren(...part.map(row => make("tr", {}, ...row.map((value, index) => {
        const { kind, name } = columns[index];
        const isSeverity = name === "severity";
        return make("td", {
          className: `${isText(kind) ? kind : ""} ${isSeverity ? value : ""}`,
          textContent: shown(kind, value),
        });
      }))));
      const range = found.length ? `${(page + 1).toLocaleString("en-US")} to ${(page + part.length).toLocaleString("en-US")} of ` : "";
      const more = omitted ? `, ${omitted.toLocaleString("en-US")} more are not on this page` : "";
      state.textContent = `${range}${found.length.toLocaleString("en-US")}${more}`;
      before.disabled = page === 0;
      after.disabled = page + SHOWN >= found.length;
    };
    search.addEventListener("input", () => update());
    before.addEventListener("click", () => { page -= SHOWN; render(); });
    after.addEventListener("click", () => { page += SHOWN; render(); });
    const controls = make("div", { className: "controls" }, ...(rows.length > SHOWN ? [search, before, after] : []), state);
    const head = make("thead", {}, make("tr", {}, ...heads));
    place.append(controls, make("div", { className: "scroll" }, make("table", {}, head, body)));
    update();
  };

  for (const [name, one] of Object.entries(read("tables"))) {
    const place = document.getElementById(name);
    if (place && one.rows.length) table(place, one);
  }
  setTheme(system.matches ? "dark" : "light");
  root.dataset.ready = "true";
})();
