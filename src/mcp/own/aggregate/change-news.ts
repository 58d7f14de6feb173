import type { Kind } from '../../wire/subscriptions.ts';
import type { Change } from '../../catalogue/tool-catalogue.ts';

/** Notifications of changed lists for one client. Each names only the kind of list. */
interface ChangeNews {
  /** Takes a change of the catalogue. */
  changed(change: Change): void;
  /** Begins to notify the client, first of the changes until now. */
  begin(): void;
}

/** Changes of a kind that come while the client reads are merged into one notification. `tell` must not reject. */
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
