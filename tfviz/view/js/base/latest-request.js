// A counter by which a caller of asynchronous functions can discard outdated results.

/** A sequence of requests of which only the latest is current. */
export class LatestRequest {
  requestNumber = 0;

  /**
   * Begin a request, which makes earlier ones obsolete; return a function that tells whether it is still the latest.
   */
  begin() {
    const requestNumber = ++this.requestNumber;
    return () => requestNumber === this.requestNumber;
  }

  /** Make all requests obsolete, including later ones, since their view is closed. */
  end() {
    this.requestNumber = NaN; // NaN differs from every number, even from itself
  }
}
