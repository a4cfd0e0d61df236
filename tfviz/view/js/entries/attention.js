// The entry point of the worker that computes attention weights.

export { serve } from "../engine/attention-worker.js";
