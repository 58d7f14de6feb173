/** Code for one client that calls a service. */
export interface Snippet {
  readonly id: string;
  readonly name: string;
  readonly code: string;
  /** The name of its file, or what the code requires. */
  readonly note?: string;
}

const ONE_LINE_MAX = 110;
const TEXT_MAX = 600;

/** JSON for people: on one line if it is short, and with long data URLs cut. */
export function jsonText(value: unknown): string {
  const short = JSON.stringify(value);
  return short.length <= ONE_LINE_MAX ? short : JSON.stringify(value, cutData, 2);
}

const cutData = (_key: string, each: unknown): unknown =>
  typeof each === 'string' && each.length > TEXT_MAX && each.startsWith('data:') ? `${each.slice(0, 40)}…` : each;
