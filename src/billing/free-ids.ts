/** A range of ids without a lock. Both ends are exclusive; null means no limit. */
export interface Gap {
  readonly after: string | null;
  readonly before: string | null;
}

const GAPS_MAX = 8;
// SQLite orders texts by UTF-8 bytes, JavaScript by UTF-16 units. Both orders agree for ASCII only.
const ASCII = /^[\0-\x7f]*$/;

/**
 * Ranges of ids that no lock has, so that a new lock needs no query. The ids of a gateway are a prefix of its process
 * and a counter, so after one query all of them are in one gap.
 */
export class FreeIds {
  #gaps: Gap[] = [];

  /** True if no lock has this id. False means unknown. */
  isFree(id: string): boolean {
    return ASCII.test(id) && this.#gaps.some((gap) => isIn(gap, id));
  }

  learn(gap: Gap): void {
    if (!ASCII.test(gap.after ?? '') || !ASCII.test(gap.before ?? '')) return;
    this.#gaps = [gap, ...this.#gaps].slice(0, GAPS_MAX);
  }

  /** Notes that a lock has this id now. If the id splits a gap, only the upper part stays. */
  take(id: string): void {
    for (let index = 0; index < this.#gaps.length; index += 1) {
      const gap = this.#gaps[index]!;
      // For an id that is not ASCII the two orders may differ, so every gap is given up.
      if (!ASCII.test(id)) this.#gaps[index] = { after: '', before: '' };
      else if (isIn(gap, id)) this.#gaps[index] = { after: id, before: gap.before };
    }
  }
}

const isIn = ({ after, before }: Gap, id: string): boolean =>
  (after === null || id > after) && (before === null || id < before);
