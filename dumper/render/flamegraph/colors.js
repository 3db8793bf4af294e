// The fill of each frame: by state, by package, by file, or by the difference; as [r, g, b].

const STATE_COLORS = {
  cpu: [242, 142, 82],
  gc: [197, 134, 222],
  gvl: [240, 200, 85],
  blocked: [101, 172, 229],
  sleeping: [168, 184, 202],
  starting: [124, 199, 164],
  stopped: [196, 160, 140],
  paging: [92, 186, 190],
  runnable: [224, 172, 138],
  slots: [242, 142, 82],
  outside: [101, 172, 229],
};
const STATE_NAMES = {
  cpu: "running",
  gc: "collecting garbage",
  gvl: "waiting for the GVL",
  blocked: "waiting in a system call",
  sleeping: "sleeping, or waiting for another thread",
  starting: "the program is not a Ruby yet",
  stopped: "stopped by a signal, or by another tracer",
  paging: "waiting for a page of memory",
  runnable: "waiting for a CPU",
  slots: "bytes of slots in Ruby's heap",
  outside: "bytes outside the heap",
};
const OTHER = [150, 150, 150];
const GREW = [214, 72, 60];
const SHRANK = [52, 124, 196];

const mix = (a, b, part) => a.map((c, i) => Math.round(c + (b[i] - c) * part));
const css = (color) => `rgb(${color[0]} ${color[1]} ${color[2]})`;

// What can be read on it.
const brightness = (color) => 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2];
const inkOn = (color) => (brightness(color) > 128 ? [24, 24, 27] : [250, 250, 250]);

// From -1 to 1, the same for the same text each time.
function jitter(text) {
  let hash = 2166136261;
  for (let i = 0; i < Math.min(text.length, 200); i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  }
  return ((hash >>> 8) % 1000) / 500 - 1;
}

// Hues that follow one another differ as much as they can.
function hue(rank) {
  const h = (rank * 137.508 + 20) % 360;
  const channel = (n) => {
    const k = (n + h / 30) % 12;
    return Math.round(255 * (0.68 - 0.2 * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}

// The gem, or what else a file belongs to.
function packageOf(f) {
  if (f.kind === KIND_C) {
    return "C functions";
  }
  const path = f.absolutePath ?? f.path;
  if (f.kind === KIND_MARK || path === null) {
    return "no file";
  }
  const gem = /\/(?:gems|bundler\/gems)\/([^/]+?)-(?:\d[^/]*|[0-9a-f]{7,})\/(?!.*\/gems\/[^/]+-\d)/.exec(path);
  if (gem) {
    return gem[1];
  }
  if (path.startsWith("<internal:")) {
    return "Ruby itself";
  }
  return /\/lib\/(?:ruby|jruby)\/(?:\d|vendor_ruby|site_ruby)/.test(path) ? "standard library" : "application";
}

const fileOf = (f) => (f.kind === KIND_C ? "C functions" : (f.path ?? "no file"));

class Colors {
  constructor(model) {
    this.model = model;
    this.by = model.differs ? "difference" : model.ofMemory ? "file" : "state";
    this.ranks = new Map();
    this.dark = false;
    this.refresh();
  }

  // After states, scope, side or the choice have changed.
  refresh(side = 0) {
    this.side = side;
    this.neutral = this.dark ? [62, 66, 74] : [224, 226, 230];
    this.cache = new Map();
    if (this.by === "difference") {
      this.#findGreatestDifference();
    } else if (this.by !== "state") {
      this.#rank(this.by === "package" ? packageOf : fileOf);
    }
  }

  #findGreatestDifference() {
    const { model } = this;
    this.greatest = 0;
    for (let node = model.scope + 1; node < model.count; node++) {
      this.greatest = Math.max(this.greatest, Math.abs(model.difference(node)));
    }
  }

  // Packages or files, the one with most time of its own first: colours are given in this order.
  #rank(keyOf) {
    const { model } = this;
    this.keys = model.functions.map(keyOf);
    const weights = new Map();
    for (let node = 1; node < model.count; node++) {
      if (!model.isGroup(node) && model.kind(node) !== KIND_MARK) {
        const key = this.keys[model.function[node]];
        weights.set(key, (weights.get(key) ?? 0) + model.self[this.side][node]);
      }
    }
    this.ranked = [...weights].sort((a, b) => b[1] - a[1]);
    this.ranks = new Map(this.ranked.map(([key], rank) => [key, rank]));
  }

  // The state in which most of it was, of those that count.
  mainState(node) {
    const weights = this.model.stateWeights(this.side, node);
    let main = -1;
    weights.forEach((ns, state) => {
      if (this.model.enabled[state] && ns > 0 && (main < 0 || ns > weights[main])) {
        main = state;
      }
    });
    return main;
  }

  stateColor(state) {
    const color = STATE_COLORS[this.model.states[state]] ?? OTHER;
    return this.dark ? mix(color, [20, 20, 24], 0.12) : color;
  }

  #plain(node) {
    const { model } = this;
    if (model.isGroup(node) && this.by !== "difference") {
      return this.dark ? [84, 92, 106] : [203, 209, 219];
    }
    if (model.kind(node) === KIND_MARK) {
      return this.dark ? [92, 92, 96] : [206, 206, 208];
    }
    if (this.by === "difference") {
      const part = this.greatest > 0 ? model.difference(node) / this.greatest : 0;
      return mix(this.neutral, part > 0 ? GREW : SHRANK, Math.sqrt(Math.abs(part)));
    }
    if (this.by === "state") {
      const state = this.mainState(node);
      return state < 0 ? OTHER : this.stateColor(state);
    }
    return hue(this.ranks.get(this.keys[model.function[node]]) ?? 0);
  }

  // Neighbours of one colour can be told apart by their brightness.
  of(node) {
    let color = this.cache.get(node);
    if (!color) {
      color = this.#plain(node);
      if (this.by !== "difference" && !this.model.isGroup(node)) {
        const part = jitter(this.model.rawName(node));
        color = mix(color, part > 0 ? [255, 255, 255] : [0, 0, 0], Math.abs(part) * (part > 0 ? 0.16 : 0.07));
      }
      this.cache.set(node, color);
    }
    return color;
  }
}
