// The page around the graph: what is shown, in which colours, zoom, search and tooltip. The address tells what is zoomed in on.

const model = new Model(JSON.parse(byId("profile").textContent));
const colors = new Colors(model);
const graph = new Graph(byId("graph"), byId("scroller"), byId("sizer"), model, colors);
const threads = new Set(model.groups().map(({ node }) => node));
const sideNames = ["after", "before"];

const amount = model.ofMemory ? bytes : time;

function describeProfile(profile) {
  if (model.ofMemory) {
    return visible(profile.facts);
  }
  const parts = [
    profile.duration_ns > 0 ? `${time(profile.duration_ns)} recorded` : "",
    profile.rate_millihertz > 0 ? `${profile.rate_millihertz / 1000} samples per second` : "",
    visible(profile.mode),
    profile.start > 0 ? new Date(profile.start * 1000).toISOString().replace("T", " ").replace(".000Z", " UTC") : "",
    profile.processes > 1 ? counted(profile.processes, "process", "processes") : "",
    counted(profile.threads, "thread"),
    visible(profile.tool),
  ];
  return parts.filter(Boolean).join(" · ");
}

function describeCounts(profile) {
  if (model.ofMemory) {
    return visible(profile.counts);
  }
  const all = counted(profile.samples, "sample");
  const verdicts = ["complete", "truncated", "torn", "unreadable"].map((name) => counted(profile[name], name, name));
  const late = profile.late > 0 ? `; ${counted(profile.late, "sample")} late` : "";
  return `${all}: ${verdicts.join(", ")}${late}`;
}

function showHeader() {
  const { data } = model;
  const what = VIEWS[data.by] ?? visible(data.by);
  const title = visible(data.title) || "Flame graph";
  document.title = `${shortened(title, 100)}: ${what}`;
  byId("title").replaceChildren(element("bdi", "", shortened(title, 300)), element("span", "view", what));
  const lines = (describe) =>
    data.profiles.map((profile, side) =>
      element("span", "line", model.differs ? element("b", "", `${sideNames[side]} `) : "", describe(profile)),
    );
  byId("facts").replaceChildren(...lines(describeProfile));
  byId("counts").replaceChildren(...lines(describeCounts));
  if (data.profiles.some((profile) => profile.cut)) {
    const cut = "A recording is not finished, or is damaged: its end is missing.";
    byId("counts").append(element("strong", "warning", cut));
  }
  if (data.remark) {
    byId("counts").append(element("strong", "warning", `${visible(data.remark)}.`));
  }
}

// ---- states and colours

function showStates() {
  const used = model.states.map((_, state) => model.totalByState.some((total) => total[state] > 0));
  const pills = model.states.map((name, state) => {
    const box = element("input");
    box.type = "checkbox";
    box.checked = true;
    box.dataset.state = name;
    box.addEventListener("change", changeStates);
    const swatch = element("span", "swatch");
    swatch.style.background = css(STATE_COLORS[name] ?? OTHER);
    const pill = element("label", "pill", box, swatch, element("span", "", name), element("span", "share"));
    pill.title = STATE_NAMES[name] ?? name;
    pill.hidden = !used[state];
    return pill;
  });
  byId("states").append(...pills);
  byId("states").hidden = model.states.length < 2;
}

function changeStates() {
  const boxes = [...byId("states").querySelectorAll("input")];
  model.setStates(boxes.map((box) => box.checked));
  update();
}

// Shares of states are of all states, whichever are left out.
function updateStateShares() {
  const weights = model.stateWeights(graph.side, model.scope);
  const all = weights.reduce((sum, ns) => sum + ns, 0);
  byId("states").querySelectorAll(".share").forEach((share, state) => {
    share.textContent = all > 0 ? percent(weights[state] / all) : "";
  });
}

function colorChoices() {
  if (model.ofMemory) {
    const types = [["file", "by type"]];
    return model.states.length > 1 ? [...types, ["state", "by place"]] : types;
  }
  const choices = [
    ["state", "by state"],
    ["package", "by gem or package"],
    ["file", "by file"],
  ];
  return model.differs ? [["difference", "by difference"], ...choices] : choices;
}

function pillOf(color, name, share) {
  const swatch = element("span", "swatch");
  swatch.style.background = css(color);
  const text = visible(name); // of a path, its end tells most
  const label = element("bdi", "", text.length > 60 ? `…${text.slice(-59)}` : text);
  return element("span", "pill", swatch, label, element("span", "share", share));
}

function updateLegend() {
  const legend = byId("legend");
  legend.hidden = colors.by === "state";
  if (colors.by === "difference") {
    const most = colors.greatest > 0 ? `; largest difference: ${points(colors.greatest).slice(1)}` : "";
    legend.replaceChildren(
      pillOf(mix(colors.neutral, SHRANK, 0.8), "smaller share after", ""),
      pillOf(colors.neutral, "the same share", ""),
      pillOf(mix(colors.neutral, GREW, 0.8), `larger share after${most}`, ""),
    );
  } else if (colors.by !== "state") {
    const all = colors.ranked.reduce((sum, [, ns]) => sum + ns, 0);
    const pills = colors.ranked
      .slice(0, 12)
      .map(([key, ns], rank) => pillOf(hue(rank), key, ns > 0 ? percent(ns / all) : ""));
    const rest = colors.ranked.length - pills.length;
    legend.replaceChildren(...pills, rest > 0 ? `and ${rest} more` : "");
  }
}

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim().split(/[\s,]+/).map(Number);
  graph.background = color("--paper-rgb");
  graph.ink = color("--ink-rgb");
  graph.accent = color("--accent-rgb");
  colors.dark = matchMedia("(prefers-color-scheme: dark)").matches;
}

// ---- all that depends on the choices is brought up to date

function update() {
  colors.refresh(graph.side);
  updateStateShares();
  updateLegend();
  graph.layout();
  graph.draw();
  updatePath();
  updateMatched();
  updateTable();
  updateStatus();
  const empty = model.total[graph.side][graph.focus] <= 0;
  byId("nothing").hidden = !empty;
  byId("nothing").textContent =
    model.total[graph.side][0] <= 0 ? "No time was spent in these states." : "This frame has no time in these states.";
}

function updatePath() {
  const path = model.pathTo(graph.focus, model.scope);
  const crumb = (node) => {
    const button = element("button", "", shortened(model.name(node), 60));
    button.type = "button";
    button.dataset.node = node;
    if (node === graph.focus) {
      button.setAttribute("aria-current", "true");
    }
    button.addEventListener("click", () => zoom(node));
    return button;
  };
  const shown = path.length > 7 ? [path[0], -1, ...path.slice(-5)] : path;
  byId("path").replaceChildren(...shown.map((node) => (node < 0 ? element("span", "", "…") : crumb(node))));
}

// ---- zoom: the address has it, so Back goes back

function readAddress() {
  const values = new URLSearchParams(location.hash.slice(1));
  const node = (name) => {
    const value = Number(values.get(name));
    return Number.isInteger(value) && value > 0 && value < model.count ? value : 0;
  };
  const scope = threads.has(node("thread")) ? node("thread") : 0;
  const focus = node("frame");
  return { scope, focus: focus !== 0 && model.isBelow(focus, scope) ? focus : scope };
}

function goTo(scope, focus) {
  const parts = [];
  if (scope !== 0) {
    parts.push(`thread=${scope}`);
  }
  if (focus !== scope) {
    parts.push(`frame=${focus}`);
  }
  if (scope !== model.scope || focus !== graph.focus) {
    location.hash = parts.join("&");
  }
}

const zoom = (node) => goTo(model.scope, node);

function followAddress() {
  const { scope, focus } = readAddress();
  model.scope = scope;
  graph.focus = focus;
  byId("scope").value = scope;
  graph.hovered = -1;
  hideTooltip();
  update();
  graph.scrollToFocus();
}

// ---- search

// What a text must be to match; null if nothing is searched for. Throws if it is no regular expression.
function readQuery() {
  const query = byId("search").value;
  if (query === "") {
    return null;
  }
  const slashed = /^\/(.+)\/$/s.exec(query);
  if (slashed || byId("regex").checked) {
    const expression = new RegExp(slashed ? slashed[1] : query, "iu");
    return (text) => expression.test(text);
  }
  const wanted = query.toLowerCase();
  return (text) => text.toLowerCase().includes(wanted);
}

function search() {
  const box = byId("search");
  let matches = null;
  box.setCustomValidity("");
  try {
    const test = readQuery();
    matches = test && model.match(test);
  } catch (error) {
    box.setCustomValidity(error.message);
  }
  graph.setMatches(matches);
  hideTooltip();
  updateMatched();
  graph.draw();
}

function updateMatched() {
  const output = byId("matched");
  if (!byId("search").validity.valid) {
    output.textContent = "not a regular expression";
    return;
  }
  if (!graph.matches) {
    output.textContent = "";
    return;
  }
  const { frames, shares } = model.matchedShares(graph.matches);
  const text = model.differs
    ? shares.map((share, side) => `${sideNames[side]} ${percent(share)}`).join(", ")
    : percent(shares[0]);
  output.textContent = `${text} in ${counted(frames, "frame")}`;
}

// The next match that can be seen, top row first; then the first again.
function nextMatch(step) {
  const found = [];
  for (const row of graph.rows) {
    found.push(...row.nodes.filter((node) => node >= 0 && graph.matches?.[node]));
  }
  if (found.length > 0) {
    const now = found.indexOf(graph.selected);
    select(found[now < 0 ? (step > 0 ? 0 : found.length - 1) : (now + step + found.length) % found.length]);
  }
}

// ---- tooltip and status

function numbersTable(node) {
  const sides = model.total.map((_, side) => side);
  const row = (name, value, className = "") =>
    element("tr", className, element("th", "", name), ...sides.map((side) => element("td", "", value(side))));
  const table = element("table", "numbers");
  if (model.differs) {
    table.append(element("tr", "", element("th"), ...sides.map((side) => element("th", "", sideNames[side]))));
  }
  const shareOf = (side, value) => `${amount(value[side][node])} `;
  table.append(
    row("total", (side) => shareOf(side, model.total) + `(${percent(model.share(side, node))})`),
    row("self", (side) => shareOf(side, model.self) + `(${percent(model.selfShare(side, node))})`),
  );
  if (graph.focus !== model.scope) {
    table.append(
      row("of the zoomed frame", (side) => {
        const all = model.total[side][graph.focus];
        return all > 0 && model.isBelow(node, graph.focus) ? percent(model.total[side][node] / all) : "–";
      }),
    );
  }
  table.append(
    row(model.ofMemory ? "objects" : model.enabled.every(Boolean) ? "samples" : "samples in all states", (side) =>
      model.samples[side][node].toLocaleString("en"),
    ),
  );
  if (model.differs) {
    const difference = element("td", "", points(model.difference(node)));
    difference.colSpan = 2;
    table.append(element("tr", "difference", element("th", "", "difference"), difference));
  }
  return table;
}

function stateBars(node) {
  const table = element("table", "bars");
  if (model.states.length < 2) {
    return table;
  }
  model.states.forEach((name, state) => {
    const parts = model.total.map((_, side) => {
      const weights = model.stateWeights(side, node);
      const all = weights.reduce((sum, ns) => sum + ns, 0);
      return all > 0 ? weights[state] / all : 0;
    });
    if (!parts.some((part) => part > 0)) {
      return;
    }
    const bar = element("span", "bar");
    bar.style.width = `${Math.max(parts[graph.side] * 100, 1)}%`;
    bar.style.background = css(colors.stateColor(state));
    const label = model.enabled[state] ? name : `${name} (left out)`;
    const numbers = parts.map((part) => element("td", "", percent(part)));
    table.append(element("tr", "", element("th", "", label), element("td", "track", bar), ...numbers));
  });
  return table;
}

function note(node) {
  if (model.kind(node) === KIND_MARK) {
    return "not a method: from here on, the stack is not known";
  }
  if (model.differs && model.total[1][node] === 0) {
    return "only after";
  }
  return model.differs && model.total[0][node] === 0 ? "only before" : "";
}

function fillTooltip(node) {
  const place = model.place(node);
  byId("tooltip").replaceChildren(
    element("div", "name", element("bdi", "", shortened(model.name(node), 600))),
    element("div", "place", element("bdi", "", shortened(place, 600))),
    element("div", "note", note(node)),
    numbersTable(node),
    stateBars(node),
  );
}

function showTooltip(node, x, y) {
  const tooltip = byId("tooltip");
  fillTooltip(node);
  tooltip.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = tooltip;
  const left = x + 16 + width > innerWidth - 8 ? x - 16 - width : x + 16;
  const top = y + 20 + height > innerHeight - 8 ? y - 12 - height : y + 20;
  tooltip.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
  tooltip.style.top = `${Math.max(8, Math.min(top, innerHeight - height - 8))}px`;
}

function hideTooltip() {
  byId("tooltip").hidden = true;
}

function updateStatus() {
  const node = graph.hovered >= 0 ? graph.hovered : graph.selected >= 0 ? graph.selected : graph.focus;
  const place = model.place(node);
  const text = [
    shortened(model.name(node), 200),
    place && shortened(place, 200),
    `${amount(model.total[graph.side][node])} (${percent(model.share(graph.side, node))})`,
    model.differs ? points(model.difference(node)) : `self ${percent(model.selfShare(graph.side, node))}`,
  ];
  byId("status").textContent = text.filter(Boolean).join(" · ");
}

function hover(node) {
  if (node !== graph.hovered) {
    graph.hovered = node;
    graph.draw();
    updateStatus();
  }
}

function select(node) {
  graph.selected = node;
  graph.hovered = -1;
  graph.scrollTo(node);
  graph.draw();
  updateStatus();
}
