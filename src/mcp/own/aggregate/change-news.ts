import type { Kind } from '../../catalogue/listing.ts';
import type { Change } from '../../catalogue/tool-catalogue.ts';

/** What a client is told of changes in lists, which say no more than the kind. */
export interface ChangeNews {
  /** Takes a change of the catalogue. */
  changed(change: Change): void;
  /** From now on the client is told, first of what has changed before. */
  begin(): void;
}

/** Tells of each kind once, however much changes while the client reads. `tell` never rejects. */
export function createChangeNews(
  includes: (service: string) => boolean,
  tell: (kind: Kind) => Promise<void>,
): ChangeNews {
  const due = new Set<Kind>();
  let waits = true;

  async function tellDue(): Promise<void> {
    if (waits) return;
    waits = true;
    for (const kind of due) {
      due.delete(kind);
      await tell(kind);
    }
    waits = false;
  }

  return {
    changed({ service, kinds }) {
      if (!includes(service)) return;
      for (const kind of kinds) due.add(kind);
      void tellDue();
    },
    begin() {
      waits = false;
      void tellDue();
    },
  };
}

export const listChanged = (kind: Kind): string => `{"jsonrpc":"2.0","method":"notifications/${kind}/list_changed"}`;
