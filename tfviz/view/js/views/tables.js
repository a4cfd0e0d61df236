// A view of tables of numbers, side by side or one at a time, such as position encodings and the gates of a recurrent
// cell.

import { h, tabs } from "../base/elements.js";
import { NO_LOCKS } from "../base/locks.js";
import { formatNumber } from "../base/numbers.js";
import { Frame } from "../controls/frame.js";
import { FORBIDDEN, Grid, ALLOWED } from "../base/grid.js";
import { label } from "../base/visible-text.js";
import { HeadStage } from "./head-stage.js";
import { table } from "../controls/table.js";

/** @import { TablePanel, TablesDocument, TablesState } from "../documents.js" */
/** @import { AnyGrid, Choices, GridPanel, Point, ViewOptions } from "../types.js" */

/** A view of tabs of tables, each table a heatmap. */
export class Tables {
  /** @type {Map<number, { panels: GridPanel<Grid>[], stage: HeadStage }>} of each tab that was looked at */
  stagesBySheet = new Map();
  /** @type {GridPanel<Grid>[]} */
  panels = [];
  /** @type {HeadStage | null} */
  stage = null;

  /**
   * @param {HTMLElement} host
   * @param {import("../base/page-data.js").PageData<TablesDocument>} source
   * @param {Choices<TablesState>} store
   * @param {ViewOptions} options
   */
  constructor(host, source, store, options) {
    this.source = source;
    this.store = store;
    this.tabs = source.viewDocument.tabs;
    this.frame = new Frame(host, source.viewDocument, store, {
      ...options,
      shortcuts: TABLE_SHORTCUTS,
      grids: () => this.panels,
      drawing: () => this.stage?.drawing ?? null,
      tables: () => this.panels.map(table),
      redraw: () => this.refresh(),
    });
    const { frame } = this;
    /** @type {import("./head-stage.js").StageHandlers} */
    this.handlers = {
      announce: (text) => frame.announce(text),
      reading: (grid, cell, name) => this.reading(grid, cell, name),
      lock: (side, index) => this.frame.lock(side, index),
      leave: () => store.set(NO_LOCKS),
    };
    this.sheetTabs =
      this.tabs.length > 1
        ? tabs(
            "Which",
            this.tabs.map(({ name }, i) => /** @type {[number, string]} */ ([i, name])),
            store.get("tab"),
            (tab) => store.set({ tab, ...NO_LOCKS }),
          )
        : null;
    if (this.sheetTabs) frame.body.append(h("div", { class: "controls" }, this.sheetTabs.element));
    frame.enableZoom((factor) => this.stage?.zoom(factor));
    this.close = frame.open();
  }

  get tab() {
    return this.tabs[this.store.get("tab")];
  }
  get axes() {
    return this.tab.panels[0].axes;
  }

  /** @param {AnyGrid} grid @param {Point} cell @param {string} name */
  reading(grid, [row, col], name) {
    const panel = this.tab.panels.find((other) => other.name === name) ?? this.tab.panels[0];
    const [down, across] = panel.axes;
    const cellName = `${down} ${label(grid.rows[row], 60)}${across && `, ${across} ${label(grid.columns[col], 60)}`}`;
    const value =
      grid instanceof Grid && grid.hasState(row, col, ALLOWED) ? formatNumber(grid.at(row, col)) : "no number";
    const details = panel.details?.[row][col].map(([word, number]) => `${label(word, 24)} ${formatNumber(number)}`);
    return `${name && `${name}: `}${cellName}  ${details ? details.join("  ") : value}`;
  }

  /** @param {TablePanel} panel */
  grid({ rows, columns, data, scale, limit }) {
    const values = this.source.numbers(data);
    const state = Uint8Array.from(values, (value) => (Number.isNaN(value) ? FORBIDDEN : ALLOWED));
    return Grid.of(rows, columns, values, state, { scale, limit });
  }

  /** Set up the stage: panels of one shape share cursor and zoom; each has axes of its own. */
  makeStage() {
    const { panels, height = 460 } = this.tab;
    const numbered = panels.some((panel) => panel.numbered);
    // cells without numbers are flat, wide enough for the names of their columns
    const options = { axes: this.axes, maxCell: 44, maxCellHeight: numbered ? 44 : 22, maxHeight: height };
    return {
      panels: panels.map((panel) => {
        const { name, axes, texts, numbered } = panel;
        return { name, axes, texts, numbered, grid: this.grid(panel) };
      }),
      stage: new HeadStage(this.frame.theme, this.handlers, options),
    };
  }

  refresh() {
    const at = this.store.get("tab");
    const { panels, stage } = this.stagesBySheet.get(at) ?? this.makeStage();
    this.stagesBySheet.set(at, { panels, stage });
    this.stage = stage;
    this.panels = panels;
    this.sheetTabs?.show(at);
    this.frame.showStage(stage.element, this.tab.note ?? "");
    stage.show(
      panels,
      {
        rows: this.store.get("locked_rows"),
        columns: this.store.get("locked_columns"),
        outlined: [],
        dividers: this.tab.panels.map((panel) => panel.dividers ?? []),
      },
      this.frame.width,
    );
    this.frame.updateTable();
  }
}

const TABLE_SHORTCUTS = [
  ["arrows", "move"],
  ["Space, C", "lock a row, a column"],
  ["+ − 0", "closer, farther, all"],
];
