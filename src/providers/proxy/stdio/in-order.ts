import { OWN_TURN_BYTES, ownTurn } from '#wire';

/** Work that returns nothing is done. Work that returns a promise is done when that resolves. */
type LineWork = () => Promise<void> | void;

/** Does the work on the lines of a process one after the other. */
interface InOrder {
  /** `chars`: the length of the text that is worked on. */
  add(chars: number, work: LineWork): void;
  idle(): Promise<void>;
}

/**
 * About OWN_TURN_BYTES of lines are worked on at once. Then the next line, and every larger one, waits for a turn of
 * the event loop, and all lines behind it wait too. `hold` is called when the first line waits, and `release` when none
 * does.
 */
export function createInOrder({ hold, release }: { readonly hold: () => void; readonly release: () => void }): InOrder {
  let waiting: { readonly chars: number; readonly work: LineWork }[] = [];
  let running: Promise<void> | null = null;
  /** Characters since the last turn. */
  let since = 0;

  const isMuch = (chars: number) => since + chars > OWN_TURN_BYTES;

  async function run(): Promise<void> {
    hold();
    // Work that is added meanwhile is at the end of the same list.
    for (const { chars, work } of waiting) {
      if (isMuch(chars)) {
        await ownTurn();
        since = 0;
      }
      since += chars;
      const under = work();
      if (under) await under;
    }
    waiting = [];
    running = null;
    release();
  }

  const wait = (chars: number, work: LineWork) => {
    waiting.push({ chars, work });
    running ??= run();
  };

  return {
    add(chars, work) {
      if (running !== null || isMuch(chars)) return wait(chars, work);
      since += chars;
      const under = work();
      if (under) wait(0, () => under);
    },
    idle: async () => running ?? undefined,
  };
}
