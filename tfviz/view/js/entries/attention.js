// Attention weights from queries and keys, in a worker of its own.

export { serve } from "../engine/attention-worker.js";
