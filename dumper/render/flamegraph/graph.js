// The canvas: where each frame is, and how it looks. Only what is wide enough is placed, only what is in sight drawn.

const ROW = 20;
const NARROWEST = 0.5; // pixels; what is narrower is drawn as one grey piece with its neighbours
const TEXT_FROM = 22;
const STRIP = 3;
const FONT = '12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

// What lies in one row, from left to right: node, left edge and width; a negative node is a piece of narrow frames.
const newRow = () => ({ nodes: [], lefts: [], widths: [] });

class Graph {
  constructor(canvas, scroller, sizer, model, colors) {
    Object.assign(this, { canvas, scroller, sizer, model, colors });
    this.context = canvas.getContext("2d", { alpha: false });
    this.focus = 0;
    this.side = 0;
    this.flames = false; // callers below
    this.setMatches(null);
    this.hovered = -1;
    this.selected = -1;
    this.textWidths = new Map();
    canvas.dataset.rowHeight = ROW;
    scroller.addEventListener("scroll", () => this.draw(), { passive: true });
  }

  // Which frames match the search: an array of 0 and 1, or null.
  setMatches(matches) {
    this.matches = matches;
    this.matchesInside = matches && this.model.accumulate(matches, 1);
    this.matchedPieces = new Map();
  }

  // Where everything is, for this width, focus and scope.
  layout() {
    const { model } = this;
    this.matchedPieces.clear();
    this.width = Math.max(this.scroller.clientWidth, 1);
    this.rows = [];
    const callers = model.pathTo(this.focus, model.scope);
    callers.forEach((node, depth) => this.#place(depth, node, 0, this.width));
    if (model.total[this.side][this.focus] > 0) {
      this.#placeBelow(callers.length - 1);
    } else {
      this.rows = [];
    }
    const height = this.rows.length * ROW;
    this.sizer.style.height = `${height}px`;
    this.#resize();
  }

  #place(depth, node, left, width) {
    const row = (this.rows[depth] ??= newRow());
    row.nodes.push(node);
    row.lefts.push(left);
    row.widths.push(width);
  }

  // The focus is as wide as the page, and what it calls is in proportion.
  #placeBelow(depth) {
    const { model } = this;
    const weights = model.total[this.side];
    const scale = this.width / weights[this.focus];
    const todo = [{ node: this.focus, depth, left: 0 }];
    while (todo.length > 0) {
      const above = todo.pop();
      let left = above.left;
      let narrow = 0;
      const pieces = [];
      for (const child of model.childrenOf(above.node)) {
        const width = weights[child] * scale;
        if (width >= NARROWEST) {
          pieces.push({ node: child, depth: above.depth + 1, left });
          this.#place(above.depth + 1, child, left, width);
          left += width;
        } else {
          narrow += width;
        }
      }
      if (narrow >= NARROWEST) {
        this.#place(above.depth + 1, ~above.node, left, narrow);
      }
      for (let i = pieces.length - 1; i >= 0; i--) {
        todo.push(pieces[i]);
      }
    }
  }

  #resize() {
    const ratio = window.devicePixelRatio || 1;
    this.height = Math.max(this.scroller.clientHeight, ROW);
    const [width, height] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.canvas.style.width = `${this.width}px`;
      this.canvas.style.height = `${this.height}px`;
    }
    this.ratio = ratio;
  }

  // Of a row, in the canvas; flames stand on its lower edge.
  #top(depth) {
    const all = this.rows.length * ROW;
    const top = this.flames ? Math.max(all, this.height) - (depth + 1) * ROW : depth * ROW;
    return top - this.scroller.scrollTop;
  }

  #depthAt(y) {
    const all = this.rows.length * ROW;
    const inAll = y + this.scroller.scrollTop;
    return Math.floor((this.flames ? Math.max(all, this.height) - inAll - 0.001 : inAll) / ROW);
  }

  // The frame at a point of the canvas: { node, depth, index }, or null. A piece of narrow frames is none.
  at(x, y) {
    const depth = this.#depthAt(y);
    const row = this.rows[depth];
    if (!row) {
      return null;
    }
    let [low, high] = [0, row.nodes.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      [low, high] = row.lefts[middle] <= x ? [middle, high] : [low, middle - 1];
    }
    const inside = row.lefts[low] <= x && x < row.lefts[low] + row.widths[low];
    return inside && row.nodes[low] >= 0 ? { node: row.nodes[low], depth, index: low } : null;
  }

  // Where a node is placed: { depth, left, width }, or null if it is not, or too narrow.
  find(node) {
    const depth = this.model.pathTo(node, this.model.scope).length - 1;
    const row = this.rows[depth];
    const index = row ? row.nodes.indexOf(node) : -1;
    return index < 0 ? null : { depth, index, left: row.lefts[index], width: row.widths[index] };
  }

  // The frame beside a node in its row.
  beside(node, step) {
    const place = this.find(node);
    const row = place && this.rows[place.depth];
    for (let i = place ? place.index + step : -1; row && i >= 0 && i < row.nodes.length; i += step) {
      if (row.nodes[i] >= 0) {
        return row.nodes[i];
      }
    }
    return node;
  }

  // The widest of what a node calls.
  widestChild(node) {
    const place = this.find(node);
    const row = place && this.rows[place.depth + 1];
    let widest = -1;
    row?.nodes.forEach((child, i) => {
      if (child > 0 && this.model.parent[child] === node && (widest < 0 || row.widths[i] > row.widths[widest])) {
        widest = i;
      }
    });
    return widest < 0 ? node : row.nodes[widest];
  }

  scrollTo(node) {
    const place = this.find(node);
    if (!place) {
      return;
    }
    const top = this.#top(place.depth);
    if (top < ROW) {
      this.scroller.scrollTop += top - 2 * ROW;
    } else if (top > this.height - 2 * ROW) {
      this.scroller.scrollTop += top - this.height + 3 * ROW;
    }
  }

  // Where the callers are: the first thing to be seen.
  scrollToFocus() {
    const depth = this.model.pathTo(this.focus, this.model.scope).length - 1;
    const above = Math.max(depth - 3, 0) * ROW;
    const all = Math.max(this.rows.length * ROW, this.height);
    this.scroller.scrollTop = this.flames ? all - this.height - above : above;
  }

  // Soon, and once, however often it is asked for.
  draw() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = undefined;
      this.#drawNow();
    });
  }

  #drawNow() {
    const { context: c } = this;
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.fillStyle = css(this.background);
    c.fillRect(0, 0, this.width, this.height);
    c.font = FONT;
    c.textBaseline = "middle";
    const ends = [this.#depthAt(0), this.#depthAt(this.height - 1)].map((d) => Math.max(0, d));
    const last = Math.min(Math.max(...ends), this.rows.length - 1);
    for (let depth = Math.min(...ends); depth <= last; depth++) {
      this.#drawRow(this.rows[depth], this.#top(depth));
    }
    this.#outline(this.hovered, this.ink, 1);
    this.#outline(this.selected, this.ink, 2);
    this.canvas.dataset.drawn = Number(this.canvas.dataset.drawn ?? 0) + 1;
  }

  #drawRow(row, top) {
    for (let i = 0; i < row.nodes.length; i++) {
      const left = row.lefts[i];
      const width = row.widths[i];
      if (row.nodes[i] < 0) {
        const matched = this.#hasMatches(~row.nodes[i]);
        this.context.fillStyle = css(mix(this.background, matched ? this.accent : this.ink, matched ? 0.6 : 0.16));
        this.context.fillRect(left, top, Math.max(width - 0.5, 0.5), ROW - 1);
      } else {
        this.#drawFrame(row.nodes[i], left, top, width > 3 ? width - 1 : width * 0.8);
      }
    }
  }

  // Whether there is a match in what is too narrow of the children of a node.
  #hasMatches(parent) {
    if (!this.matches) {
      return false;
    }
    let found = this.matchedPieces.get(parent);
    if (found === undefined) {
      const { model } = this;
      const weights = model.total[this.side];
      const least = (NARROWEST * weights[this.focus]) / this.width;
      found = model.childrenOf(parent).some((child) => {
        return weights[child] > 0 && weights[child] < least && this.matchesInside[child] > 0;
      });
      this.matchedPieces.set(parent, found);
    }
    return found;
  }

  #fill(node) {
    let color = this.colors.of(node);
    if (this.matches) {
      color = this.matches[node] ? this.accent : mix(color, this.background, 0.62);
    }
    // A caller of the focus is wider than its share: it is shown as a heading only.
    return node !== this.focus && this.model.isBelow(this.focus, node) ? mix(color, this.background, 0.45) : color;
  }

  #drawFrame(node, left, top, width) {
    const { context: c, model } = this;
    const color = this.#fill(node);
    c.fillStyle = css(color);
    c.fillRect(left, top, width, ROW - 1);
    if (model.kind(node) === KIND_MARK && width > 2) {
      this.#hatch(left, top, width);
    }
    if (width > 8 && this.colors.by === "state" && !this.matches) {
      this.#drawStrip(node, left, top, width);
    }
    if (width >= TEXT_FROM) {
      this.#drawName(node, left, top, width, color);
    }
  }

  #hatch(left, top, width) {
    const { context: c } = this;
    c.save();
    c.beginPath();
    c.rect(left, top, width, ROW - 1);
    c.clip();
    c.strokeStyle = css(mix(this.background, this.ink, 0.4));
    c.globalAlpha = 0.55;
    c.beginPath();
    const end = Math.min(left + width, this.width);
    for (let x = Math.floor((left - ROW) / 7) * 7; x < end; x += 7) {
      c.moveTo(x, top + ROW);
      c.lineTo(x + ROW, top);
    }
    c.stroke();
    c.restore();
  }

  // All states that it was in, side by side, in their proportion: none if it is one only.
  #drawStrip(node, left, top, width) {
    const { context: c, model } = this;
    const weights = model.stateWeights(this.side, node);
    const total = model.total[this.side][node];
    if (weights.some((ns, state) => model.enabled[state] && ns >= total * 0.995)) {
      return;
    }
    const y = this.flames ? top : top + ROW - 1 - STRIP;
    let x = left;
    weights.forEach((ns, state) => {
      if (model.enabled[state] && ns > 0) {
        const part = (width * ns) / total;
        c.fillStyle = css(mix(this.colors.stateColor(state), [0, 0, 0], 0.12));
        c.fillRect(x, y, part, STRIP);
        x += part;
      }
    });
  }

  #textWidth(text) {
    let width = this.textWidths.get(text);
    if (width === undefined) {
      width = this.context.measureText(text).width;
      this.textWidths.set(text, width);
    }
    return width;
  }

  // As much of a name as there is room for.
  #fit(name, room) {
    let text = shortened(name, 400);
    const whole = this.#textWidth(text);
    if (whole <= room) {
      return text;
    }
    let length = Math.floor((text.length * room) / whole);
    do {
      text = name.slice(0, length) + "…";
      length--;
    } while (length >= 1 && this.context.measureText(text).width > room);
    return length >= 1 ? text : "";
  }

  #drawName(node, left, top, width, color) {
    const { context: c, model } = this;
    const style = model.isGroup(node) ? "bold " : model.kind(node) === KIND_C ? "italic " : "";
    const text = this.#fit(model.name(node), width - 8);
    if (text) {
      c.font = style + FONT;
      c.fillStyle = css(inkOn(color));
      c.fillText(text, left + 4, top + ROW / 2, width - 6);
    }
  }

  #outline(node, color, thickness) {
    const place = node >= 0 ? this.find(node) : null;
    if (!place) {
      return;
    }
    const { context: c } = this;
    c.strokeStyle = css(color);
    c.lineWidth = thickness;
    const inset = thickness / 2;
    const width = Math.max(place.width - 1 - thickness, 1);
    c.strokeRect(place.left + inset, this.#top(place.depth) + inset, width, ROW - 1 - thickness);
  }
}
