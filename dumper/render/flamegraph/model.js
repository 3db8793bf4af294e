// The call tree and its numbers: nothing here knows of the document.

const FUNCTION_COLUMNS = 5;
const NODE_COLUMNS = 3;
const KIND_C = 1;
const KIND_MARK = 2;

// What would hide, or turn around the text next to it, is shown as its code point.
const UNSEEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const visible = (text) => text.replace(UNSEEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

// Names may be as long as somebody liked: what is shown of them is not.
const shortened = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

class Model {
  constructor(data) {
    this.data = data;
    this.ofMemory = data.unit === "bytes";
    this.states = data.states;
    this.sides = data.profiles.length;
    this.differs = this.sides > 1;
    this.count = data.nodes.length / NODE_COLUMNS;
    this.parent = this.#column(0);
    this.function = this.#column(1);
    this.line = this.#column(2);
    this.functions = this.#readFunctions();
    this.selfByState = data.weights.map((table) => this.#scatter(table, this.states.length, 3));
    this.totalByState = this.selfByState.map((self) => this.accumulate(self, this.states.length));
    this.samples = data.samples.map((table) => this.accumulate(this.#scatter(table, 1, 2), 1));
    this.#findChildren();
    this.sort("weight");
    this.scope = 0;
    this.setStates(this.states.map(() => true));
  }

  #column(of) {
    const { nodes } = this.data;
    return Float64Array.from({ length: this.count }, (_, i) => nodes[i * NODE_COLUMNS + of]);
  }

  #readFunctions() {
    const { functions, strings } = this.data;
    const text = (index) => (index < 0 ? null : strings[index]);
    return Array.from({ length: functions.length / FUNCTION_COLUMNS }, (_, i) => {
      const [kind, name, path, absolutePath, line] = functions.slice(i * FUNCTION_COLUMNS, (i + 1) * FUNCTION_COLUMNS);
      const raw = text(name) ?? "";
      return { kind, name: raw, shown: visible(raw), path: text(path), absolutePath: text(absolutePath), line };
    });
  }

  // A table of (node, value) (2 steps) or (node, column, value) (3) as an array with so many columns for each node.
  #scatter(table, columns, step) {
    const all = new Float64Array(this.count * columns);
    for (let i = 0; i < table.length; i += step) {
      all[table[i] * columns + (step === 3 ? table[i + 1] : 0)] += table[i + step - 1];
    }
    return all;
  }

  // What is of a node and all below it: children come after their parents.
  accumulate(self, columns) {
    const total = Float64Array.from(self);
    for (let node = this.count - 1; node > 0; node--) {
      for (let i = 0; i < columns; i++) {
        total[this.parent[node] * columns + i] += total[node * columns + i];
      }
    }
    return total;
  }

  // The children of a node are this.children[firstChild[node]] to this.children[firstChild[node + 1] - 1].
  #findChildren() {
    this.firstChild = new Uint32Array(this.count + 1);
    for (let node = 1; node < this.count; node++) {
      this.firstChild[this.parent[node] + 1]++;
    }
    for (let node = 0; node < this.count; node++) {
      this.firstChild[node + 1] += this.firstChild[node];
    }
    const next = this.firstChild.slice();
    this.children = new Uint32Array(Math.max(this.count - 1, 0));
    for (let node = 1; node < this.count; node++) {
      this.children[next[this.parent[node]]++] = node;
    }
  }

  // The order of siblings: it stays the same whatever states are left out, so that frames can be found again.
  sort(order) {
    const weight = new Float64Array(this.count);
    for (const total of this.totalByState) {
      total.forEach((ns, i) => (weight[Math.floor(i / this.states.length)] += ns));
    }
    const byName = (a, b) => {
      const [x, y] = [this.name(a), this.name(b)];
      return x < y ? -1 : x > y ? 1 : a - b;
    };
    const compare = order === "name" ? byName : (a, b) => weight[b] - weight[a] || a - b;
    for (let node = 0; node < this.count; node++) {
      const [begin, end] = [this.firstChild[node], this.firstChild[node + 1]];
      if (end - begin > 1) {
        this.children.subarray(begin, end).sort(compare);
      }
    }
  }

  // Which states count; `self` and `total` are then of these.
  setStates(enabled) {
    this.enabled = enabled;
    const sum = (byState) => {
      const sums = new Float64Array(this.count);
      byState.forEach((ns, i) => {
        if (enabled[i % this.states.length]) {
          sums[Math.floor(i / this.states.length)] += ns;
        }
      });
      return sums;
    };
    this.self = this.selfByState.map(sum);
    this.total = this.totalByState.map(sum);
  }

  share(side, node) {
    const all = this.total[side][this.scope];
    return all > 0 ? this.total[side][node] / all : 0;
  }

  selfShare(side, node) {
    const all = this.total[side][this.scope];
    return all > 0 ? this.self[side][node] / all : 0;
  }

  // How much more of the time, after than before.
  difference(node) {
    return this.differs ? this.share(0, node) - this.share(1, node) : 0;
  }

  stateWeights(side, node) {
    const n = this.states.length;
    return this.totalByState[side].subarray(node * n, (node + 1) * n);
  }

  isGroup(node) {
    return this.function[node] < 0;
  }

  functionOf(node) {
    return this.isGroup(node) ? null : this.functions[this.function[node]];
  }

  // As it is in the profile: hostile, maybe.
  rawName(node) {
    if (this.isGroup(node)) {
      return node === 0 ? "all" : (this.data.strings[this.line[node]] ?? "");
    }
    const name = this.functionOf(node).name;
    return this.line[node] > 0 ? `${name}:${this.line[node]}` : name;
  }

  name(node) {
    if (this.isGroup(node)) {
      return visible(this.rawName(node));
    }
    const name = this.functionOf(node).shown;
    return this.line[node] > 0 ? `${name}:${this.line[node]}` : name;
  }

  place(node) {
    const f = this.functionOf(node);
    if (!f || f.path === null) {
      return f?.kind === KIND_C ? "C function" : "";
    }
    return visible(f.line > 0 ? `${f.path}:${f.line}` : f.path);
  }

  kind(node) {
    return this.functionOf(node)?.kind ?? -1;
  }

  isBelow(node, above) {
    while (node > above) {
      node = this.parent[node];
    }
    return node === above;
  }

  // From the root, or another, down to a node.
  pathTo(node, from = 0) {
    const path = [node];
    while (node !== from && node !== 0) {
      node = this.parent[node];
      path.push(node);
    }
    return path.reverse();
  }

  // The processes and threads below the root, each behind the one that it is of.
  groups() {
    const groups = [];
    const walk = (node, depth) => {
      for (const child of this.childrenOf(node)) {
        if (this.isGroup(child)) {
          groups.push({ node: child, depth });
          walk(child, depth + 1);
        }
      }
    };
    walk(0, 0);
    return groups;
  }

  childrenOf(node) {
    return this.children.subarray(this.firstChild[node], this.firstChild[node + 1]);
  }

  // Which nodes `test` is true of, by name or place, as they are or as they are shown: 1 for each that it is.
  // Each function is asked once.
  match(test) {
    const either = (raw, shown) => test(raw) || (shown !== raw && test(shown));
    const known = new Map();
    const matches = new Uint8Array(this.count);
    for (let node = 1; node < this.count; node++) {
      const key = `${this.function[node]} ${this.line[node]}`;
      let matched = known.get(key);
      if (matched === undefined) {
        const f = this.functionOf(node);
        const hasPath = f !== null && f.path !== null;
        matched = either(this.rawName(node), this.name(node));
        matched ||= hasPath && either(`${f.path}:${f.line}`, this.place(node));
        known.set(key, matched);
      }
      matches[node] = matched ? 1 : 0;
    }
    return matches;
  }

  // How many frames match in the scope, and the share of time in which at least one was on the stack.
  matchedShares(matches) {
    const inScope = new Uint8Array(this.count);
    const covered = new Uint8Array(this.count);
    const shares = this.total.map(() => 0);
    let frames = 0;
    for (let node = this.scope; node < this.count; node++) {
      const parent = this.parent[node];
      inScope[node] = node === this.scope || (parent >= this.scope && inScope[parent]) ? 1 : 0;
      if (!inScope[node]) {
        continue;
      }
      const above = node !== this.scope && covered[parent];
      covered[node] = above || matches[node] ? 1 : 0;
      frames += matches[node] && this.total.some((total) => total[node] > 0) ? 1 : 0;
      if (matches[node] && !above) {
        shares.forEach((_, side) => (shares[side] += this.share(side, node)));
      }
    }
    return { frames, shares };
  }

  // Each function once: its own time in the scope, and the time in which it was on the stack at all.
  functionTable() {
    const rows = new Map();
    const onStack = new Map();
    const stack = [this.scope];
    while (stack.length > 0) {
      const node = stack.pop();
      if (node < 0) {
        onStack.set(~node, onStack.get(~node) - 1);
        continue;
      }
      const id = this.function[node];
      if (id >= 0) {
        let row = rows.get(id);
        if (!row) {
          row = { id, node, self: this.total.map(() => 0), total: this.total.map(() => 0) };
          rows.set(id, row);
        }
        const above = onStack.get(id) ?? 0;
        for (let side = 0; side < this.sides; side++) {
          row.self[side] += this.selfShare(side, node);
          row.total[side] += above > 0 ? 0 : this.share(side, node);
        }
        onStack.set(id, above + 1);
        stack.push(~id);
      }
      for (const child of this.childrenOf(node)) {
        stack.push(child);
      }
    }
    return [...rows.values()].filter((row) => row.total.some((share) => share > 0));
  }
}
