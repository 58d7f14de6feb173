export interface CallsNow {
  readonly provider: string;
  readonly service: string;
  readonly inFlight: number;
  /** Of these, without a first byte. */
  readonly waiting: number;
  readonly oldestWaitS: number;
}

const LINE = /^tollgate_attempts_(in_flight|waiting|oldest_wait_seconds)\{(.*)\} (\S+)$/gm;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;
const ESCAPED = /\\(.)/g;

/**
 * Reads the gauges of a metrics text that tell which attempts run. Only this text has the figures of all workers. The
 * longest wait comes first; providers without attempts are left out.
 */
export function readCallsNow(text: string): readonly CallsNow[] {
  const rows = new Map<string, { labels: Map<string, string>; figures: Map<string, number> }>();
  for (const [, name = '', labels = '', value] of text.matchAll(LINE)) {
    const known = rows.get(labels) ?? { labels: labelsIn(labels), figures: new Map<string, number>() };
    known.figures.set(name, Number(value));
    rows.set(labels, known);
  }
  return [...rows.values()]
    .map(({ labels, figures }) => ({
      provider: labels.get('gen_ai_provider_name') ?? '',
      service: labels.get('gen_ai_request_model') ?? '',
      inFlight: figures.get('in_flight') ?? 0,
      waiting: figures.get('waiting') ?? 0,
      oldestWaitS: figures.get('oldest_wait_seconds') ?? 0,
    }))
    .filter(({ inFlight }) => inFlight > 0)
    .toSorted((a, b) => b.oldestWaitS - a.oldestWaitS);
}

const labelsIn = (labels: string): Map<string, string> =>
  new Map(
    [...labels.matchAll(LABEL)].map(([, name = '', value = '']) => [
      name,
      value.replaceAll(ESCAPED, (_all, letter: string) => (letter === 'n' ? '\n' : letter)),
    ]),
  );
