/** A look that takes a long time. */
interface SlowLook {
  /** The provider that the look waits for. */
  readonly provider: string;
  /** Ends the look without a result. */
  readonly end: () => void;
}

/** Slow looks. They do not occupy the slots of other looks, but their number is limited. */
interface SlowLooks {
  /** If there are too many, ends the oldest look of the provider with the most slow looks. */
  add(look: SlowLook): void;
  delete(look: SlowLook): void;
}

export function createSlowLooks(max: number): SlowLooks {
  const looks = new Set<SlowLook>();

  const oldestOfMost = (): SlowLook | undefined => {
    const counts = new Map<string, number>();
    for (const { provider } of looks) counts.set(provider, (counts.get(provider) ?? 0) + 1);
    const most = Math.max(...counts.values());
    return looks.values().find(({ provider }) => counts.get(provider) === most);
  };

  return {
    add(look) {
      looks.add(look);
      if (looks.size <= max) return;
      const one = oldestOfMost()!;
      looks.delete(one);
      one.end();
    },
    delete: (look) => void looks.delete(look),
  };
}
