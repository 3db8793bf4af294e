// Keys, pointer and controls, and the start of the page.

// ---- keys

function focusSearch() {
  byId("search").focus();
  byId("search").select();
}

function escape() {
  if (byId("search").value !== "") {
    byId("search").value = "";
    search();
    graph.canvas.focus();
  } else {
    goTo(0, 0);
  }
}

function turn() {
  graph.flames = !graph.flames;
  byId("direction").setAttribute("aria-pressed", graph.flames);
  byId("direction").textContent = graph.flames ? "↑ Flames" : "↓ Icicle";
  graph.layout();
  graph.scrollToFocus();
  graph.draw();
}

function toCaller() {
  const now = graph.selected;
  select(now > model.scope ? model.parent[now] : model.scope);
}

const toCallee = () => select(graph.widestChild(graph.selected >= 0 ? graph.selected : graph.focus));

// A frame that was selected may be none of those that are shown.
function keepSelection() {
  if (graph.selected < 0 || !graph.find(graph.selected)) {
    graph.selected = graph.focus;
  }
}

const GRAPH_KEYS = {
  ArrowUp: () => (graph.flames ? toCallee() : toCaller()),
  ArrowDown: () => (graph.flames ? toCaller() : toCallee()),
  ArrowLeft: () => select(graph.beside(graph.selected, -1)),
  ArrowRight: () => select(graph.beside(graph.selected, 1)),
  Enter: () => zoom(graph.selected),
  " ": () => zoom(graph.selected),
  Backspace: () => history.back(),
};

const PAGE_KEYS = {
  "/": focusSearch,
  Escape: escape,
  Home: () => goTo(0, 0),
  0: () => goTo(0, 0),
  i: turn,
  f: toggleTable,
  n: () => nextMatch(1),
  N: () => nextMatch(-1),
  "?": () => byId("help").showModal(),
};

function onKey(event) {
  const typing = event.target.closest("input[type=search], select");
  const find = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f";
  if (find && document.activeElement !== byId("search")) {
    event.preventDefault(); // the browser's own search sees no canvas; pressed twice, it comes all the same
    focusSearch();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open || (typing && event.key !== "Escape")) {
    return;
  }
  const inGraph = event.target === graph.canvas ? GRAPH_KEYS[event.key] : undefined;
  const action = inGraph ?? PAGE_KEYS[event.key];
  if (action) {
    event.preventDefault();
    if (inGraph) {
      keepSelection();
    }
    action();
  }
}

// ---- the start

function fillSelect(select, choices) {
  select.replaceChildren(...choices.map(([value, text]) => new Option(text, value)));
}

function showControls() {
  const groups = model.groups();
  byId("scope-field").hidden = groups.length === 0;
  fillSelect(byId("scope"), [
    [0, "all"],
    ...groups.map(({ node, depth }) => [node, "\u00a0\u00a0".repeat(depth) + shortened(model.name(node), 80)]),
  ]);
  byId("side-field").hidden = !model.differs;
  if (model.ofMemory) {
    byId("scope-field").firstChild.textContent = "Age ";
    byId("table-button").textContent = "Classes";
    byId("states").firstChild.textContent = "Places";
  }
  fillSelect(byId("color"), colorChoices());
}

function listenToPointer() {
  const { canvas } = graph;
  const under = (event) => graph.at(event.offsetX, event.offsetY)?.node ?? -1;
  canvas.addEventListener("mousemove", (event) => {
    const node = under(event);
    hover(node);
    canvas.style.cursor = node >= 0 ? "pointer" : "default";
    if (node >= 0) {
      showTooltip(node, event.clientX, event.clientY);
    } else {
      hideTooltip();
    }
  });
  canvas.addEventListener("mouseleave", () => {
    hover(-1);
    hideTooltip();
  });
  canvas.addEventListener("click", (event) => {
    const node = under(event);
    if (node >= 0) {
      graph.selected = node;
      zoom(node);
    }
  });
  graph.scroller.addEventListener("scroll", hideTooltip, { passive: true });
}

function listenToControls() {
  const on = (id, type, action) => byId(id).addEventListener(type, action);
  on("search", "input", search);
  on("regex", "change", search);
  on("search", "keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      nextMatch(event.shiftKey ? -1 : 1);
    }
  });
  on("scope", "change", () => {
    const scope = Number(byId("scope").value);
    goTo(scope, scope);
  });
  on("side", "change", () => {
    graph.side = Number(byId("side").value);
    update();
  });
  on("color", "change", () => {
    colors.by = byId("color").value;
    update();
  });
  on("order", "change", () => {
    model.sort(byId("order").value);
    update();
  });
  on("direction", "click", turn);
  on("table-button", "click", toggleTable);
  on("help-button", "click", () => byId("help").showModal());
}

function listenToWindow() {
  addEventListener("hashchange", followAddress);
  addEventListener("keydown", onKey);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readTheme();
    update();
  });
  new ResizeObserver(() => {
    graph.layout();
    graph.draw();
  }).observe(graph.scroller);
}

showHeader();
showStates();
showControls();
readTheme();
listenToPointer();
listenToControls();
listenToWindow();
followAddress();
document.documentElement.dataset.ready = "true";
