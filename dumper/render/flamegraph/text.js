// Elements and numbers as text.

const byId = (id) => document.getElementById(id);

function element(name, className, ...content) {
  const made = document.createElement(name);
  if (className) {
    made.className = className;
  }
  made.append(...content);
  return made;
}

const TIME_UNITS = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
];

function time(ns) {
  if (ns >= 120e9) {
    const seconds = Math.round(ns / 1e9);
    const [h, min] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
    return `${h > 0 ? `${h} h ` : ""}${min} min ${seconds % 60} s`;
  }
  const [factor, unit] = TIME_UNITS.find(([least]) => ns >= least) ?? [1, "ns"];
  const value = ns / factor;
  return `${value.toFixed(ns < 1e3 || value >= 100 ? 0 : value >= 10 ? 1 : 2)} ${unit}`;
}

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

function bytes(count) {
  const unit = count < 1024 ? 0 : Math.min(Math.floor(Math.log2(count) / 10), BYTE_UNITS.length - 1);
  const value = count / 1024 ** unit;
  return `${value.toFixed(unit === 0 || value >= 100 ? 0 : 1)} ${BYTE_UNITS[unit]}`;
}

function percent(share) {
  const value = share * 100;
  return `${value.toFixed(value === 0 || value >= 0.995 ? 1 : value >= 0.01 ? 2 : 4)} %`;
}

function points(difference) {
  const value = difference * 100;
  const digits = Math.abs(value) >= 0.095 ? 1 : 2;
  return `${value > 0 ? "+" : value < 0 ? "−" : "±"}${Math.abs(value).toFixed(digits)} points`;
}

const counted = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

const VIEWS = {
  wall: "wall-clock time",
  cpu: "CPU time",
  gvl: "time waiting for the GVL",
  gc: "time in garbage collection",
  heap: "memory by age, type and class",
  dominators: "memory that objects keep",
};
