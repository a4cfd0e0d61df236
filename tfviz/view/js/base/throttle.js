// A limit on how often something is drawn while results arrive.

/**
 * Return a function that calls another at most once in an interval, the first time an interval from now. Calls in
 * between are dropped, so the caller makes the last one itself.
 * @param {() => void} act
 * @param {number} interval milliseconds
 */
export function throttle(act, interval) {
  let last = performance.now();
  return () => {
    if (performance.now() - last < interval) return;
    act();
    last = performance.now();
  };
}
