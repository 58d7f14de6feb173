const BY_PLACE = ['--accent', '--model', '--tool', '--agent', '--image', '--video'] as const;

/** The colour of a series: its own, or one that depends on its index. */
export const seriesColor = (own: string | undefined, index: number): string =>
  own ?? BY_PLACE[index % BY_PLACE.length]!;
