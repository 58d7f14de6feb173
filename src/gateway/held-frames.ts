import type { Frame } from '#billing';

/**
 * The frames of a call that holds the body of its request. The body is given back when the frames have ended, which may
 * be long after the answer: if the client leaves, the call still goes on.
 */
export class HeldFrames implements AsyncIterator<Frame> {
  readonly #giveBack: () => void;
  #frames: AsyncIterator<Frame> | null = null;
  #begun = false;

  constructor(giveBack: () => void) {
    this.#giveBack = giveBack;
  }

  of(frames: AsyncIterable<Frame>): AsyncIterable<Frame> {
    return {
      [Symbol.asyncIterator]: () => {
        this.#begun = true;
        this.#frames = frames[Symbol.asyncIterator]();
        return this;
      },
    };
  }

  /** To be called when the answer is written, or will not be. Frames that nobody has begun to read never end. */
  written(): void {
    if (!this.#begun) this.#giveBack();
  }

  async next(): Promise<IteratorResult<Frame>> {
    try {
      const step = await this.#frames!.next();
      if (step.done) this.#giveBack();
      return step;
    } catch (error) {
      this.#giveBack();
      throw error;
    }
  }

  async return(): Promise<IteratorResult<Frame>> {
    try {
      await this.#frames!.return?.();
      return { done: true, value: undefined };
    } finally {
      this.#giveBack();
    }
  }
}
