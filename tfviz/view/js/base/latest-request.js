// A counter by which a caller of asynchronous functions can discard outdated results.

/** A sequence of requests of which only the latest is current. */
export class LatestRequest {
  requestNumber = 0;
  /** The number of the latest request whose answer was accepted. */
  acceptedNumber = 0;

  /**
   * Begin a request, which makes earlier ones obsolete; return a function that tells whether it is still the latest.
   */
  begin() {
    return this.beginInOrder().isCurrent;
  }

  /**
   * Begin a request whose answer is shown even if a later one has begun meanwhile, but not after the answer to a later
   * one. Return two functions: one tells whether it is still the latest, the other accepts its answer, and returns
   * false if it comes too late.
   */
  beginInOrder() {
    const requestNumber = ++this.requestNumber;
    return {
      isCurrent: () => requestNumber === this.requestNumber,
      accept: () => {
        if (!(requestNumber > this.acceptedNumber)) return false;
        this.acceptedNumber = requestNumber;
        return true;
      },
    };
  }

  /** Make all requests obsolete, including later ones, since their view is closed. */
  end() {
    this.requestNumber = NaN; // NaN differs from every number, even from itself
    this.acceptedNumber = Infinity;
  }
}
