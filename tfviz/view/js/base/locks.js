// The rows and columns that a reader has locked, as they are named in the state of a view.

/** The names by side. @type {{ rows: "locked_rows", columns: "locked_columns" }} */
export const LOCKS = { rows: "locked_rows", columns: "locked_columns" };

/** @type {{ locked_rows: number[], locked_columns: number[] }} */
export const NO_LOCKS = { locked_rows: [], locked_columns: [] };
