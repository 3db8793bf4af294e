// The list of functions.

const panel = { open: false, by: model.differs ? "change" : "self" };

function columnsOf() {
  const column = (key, title, value, show = percent) => ({ key, title, value, show });
  if (!model.differs) {
    return [column("self", "Self", (row) => row.self[0]), column("total", "Total", (row) => row.total[0])];
  }
  return [
    column("change", "Self, change", (row) => row.self[0] - row.self[1], points),
    column("self", "after", (row) => row.self[0]),
    column("self-before", "before", (row) => row.self[1]),
    column("total-change", "Total, change", (row) => row.total[0] - row.total[1], points),
    column("total", "after", (row) => row.total[0]),
    column("total-before", "before", (row) => row.total[1]),
  ];
}

function tableRow(row, columns) {
  const f = model.functions[row.id];
  const gone = row.total[0] === 0 ? "only before" : model.differs && row.total[1] === 0 ? "only after" : "";
  const name = element("button", "", shortened(f.shown, 200));
  name.type = "button";
  name.title = "Search for this name";
  name.addEventListener("click", () => {
    byId("search").value = f.shown;
    byId("regex").checked = false;
    search();
  });
  const line = f.path && f.line > 0 ? `:${f.line}` : "";
  const place = element("bdi", "place", shortened(visible(f.path ?? ""), 120) + line);
  const cells = columns.map(({ value, show }) => {
    const cell = element("td", "number", show(value(row)));
    cell.classList.toggle("grew", show === points && value(row) > 0.0005);
    cell.classList.toggle("shrank", show === points && value(row) < -0.0005);
    return cell;
  });
  return element("tr", "", ...cells, element("td", "", name, " ", place, element("span", "note", gone)));
}

function updateTable() {
  byId("table-panel").hidden = !panel.open;
  byId("table-button").setAttribute("aria-pressed", panel.open);
  if (!panel.open) {
    return;
  }
  const columns = columnsOf();
  const by = columns.find(({ key }) => key === panel.by);
  const rows = model.functionTable().sort((a, b) => Math.abs(by.value(b)) - Math.abs(by.value(a)));
  const heads = columns.map(({ key, title }) => {
    const button = element("button", "", title);
    button.type = "button";
    button.addEventListener("click", () => {
      panel.by = key;
      updateTable();
    });
    const head = element("th", "number", button);
    head.setAttribute("aria-sort", key === panel.by ? "descending" : "none");
    return head;
  });
  const table = byId("table-panel");
  table.querySelector("thead").replaceChildren(element("tr", "", ...heads, element("th", "", model.ofMemory ? "Class" : "Function")));
  table.querySelector("tbody").replaceChildren(...rows.slice(0, 200).map((row) => tableRow(row, columns)));
}

function toggleTable() {
  panel.open = !panel.open;
  updateTable();
  graph.layout();
  graph.draw();
}
