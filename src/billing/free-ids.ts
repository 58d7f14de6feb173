/** No lock has an id between these two, both left out; null is open. */
export interface Gap {
  readonly after: string | null;
  readonly before: string | null;
}

const GAPS_MAX = 8;
// SQLite orders texts by their UTF-8 bytes, this language by UTF-16 units: within ASCII they agree.
const ASCII = /^[\0-\x7f]*$/;

/**
 * Stretches of ids that no lock has, so that a new lock need not be looked for in the table. The ids of a gateway
 * are a prefix of its process and a counter: after one look-up they are all in one gap.
 */
export class FreeIds {
  #gaps: Gap[] = [];

  /** True where no lock has this id; false says nothing. */
  isFree(id: string): boolean {
    return ASCII.test(id) && this.#gaps.some((gap) => isIn(gap, id));
  }

  learn(gap: Gap): void {
    if (!ASCII.test(gap.after ?? '') || !ASCII.test(gap.before ?? '')) return;
    this.#gaps = [gap, ...this.#gaps].slice(0, GAPS_MAX);
  }

  /** A lock has this id now. Of a gap that it divides the upper part is kept. */
  take(id: string): void {
    for (let index = 0; index < this.#gaps.length; index += 1) {
      const gap = this.#gaps[index]!;
      // By the order of the table, also for an id that is not ASCII: the gap is given up where they may differ.
      if (!ASCII.test(id)) this.#gaps[index] = { after: '', before: '' };
      else if (isIn(gap, id)) this.#gaps[index] = { after: id, before: gap.before };
    }
  }
}

const isIn = ({ after, before }: Gap, id: string): boolean =>
  (after === null || id > after) && (before === null || id < before);
