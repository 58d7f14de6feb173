/** A look that takes long. */
interface SlowLook {
  /** Whom it waits for. */
  readonly provider: string;
  /** Has it seen nothing. */
  readonly end: () => void;
}

/** Looks that take long: they hold none of the places for looks, and there are only so many of them. */
interface SlowLooks {
  /** Above the limit, the oldest look of the provider with the most looks is ended. */
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
