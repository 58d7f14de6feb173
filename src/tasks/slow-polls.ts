/** A poll that takes a long time. */
interface SlowPoll {
  /** The provider that the poll waits for. */
  readonly provider: string;
  /** Ends the poll without a result. */
  readonly end: () => void;
}

/** Slow polls. They do not occupy the slots of other polls, but their number is limited. */
interface SlowPolls {
  /** If there are too many, ends the oldest poll of the provider with the most slow polls. */
  add(poll: SlowPoll): void;
  delete(poll: SlowPoll): void;
}

export function createSlowPolls(max: number): SlowPolls {
  const polls = new Set<SlowPoll>();

  const oldestOfMost = (): SlowPoll | undefined => {
    const counts = new Map<string, number>();
    for (const { provider } of polls) counts.set(provider, (counts.get(provider) ?? 0) + 1);
    const most = Math.max(...counts.values());
    return polls.values().find(({ provider }) => counts.get(provider) === most);
  };

  return {
    add(poll) {
      polls.add(poll);
      if (polls.size <= max) return;
      const one = oldestOfMost()!;
      polls.delete(one);
      one.end();
    },
    delete: (poll) => void polls.delete(poll),
  };
}
