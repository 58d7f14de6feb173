import { fstatSync, writeSync } from 'node:fs';

const LEVELS: Readonly<Record<string, string>> = {
  trace: '2',
  debug: '2',
  info: '0',
  warn: '33',
  error: '31',
  fatal: '31',
};

/** Formats a JSON log line for people: time, event and important facts. A line that is not JSON stays as it is. */
export function formatLine(line: string, color: boolean): string {
  let record: Record<string, unknown>;
  try {
    record = JSON.parse(line) as Record<string, unknown>;
  } catch {
    return line;
  }
  const paint = (code: string, text: string) => (color && code !== '0' ? `\u001b[${code}m${text}\u001b[0m` : text);
  const { level, time, msg, ...facts } = record;
  const clock = paint('2', new Date(Number(time)).toTimeString().slice(0, 8));
  if (msg === 'call' || msg === 'free call' || msg === 'call concluded')
    return `${clock}  ${describeCall(facts, paint)}\n`;
  if (msg === 'refused') return `${clock}  ${describeRefusal(facts, paint)}\n`;
  const name = String(level);
  const label = name === 'info' ? '' : `${paint(LEVELS[name] ?? '0', name)}  `;
  return `${clock}  ${label}${String(msg ?? '')}${describeFacts(facts, paint)}\n`;
}

type Paint = (code: string, text: string) => string;

function describeCall(call: Record<string, unknown>, paint: Paint): string {
  const status = Number(call['status']);
  const usage = (call['usage'] ?? {}) as Record<string, number>;
  const units = Object.entries(usage).map(([meter, count]) => `${count} ${meter}`);
  const cost = call['method'] === undefined ? `$${(Number(call['cost_micro_usd'] ?? 0) / 1e6).toFixed(6)}` : 'free';
  const parts = [
    // A call under another call ends first. The line of the outer call follows.
    ...(call['parent'] === undefined ? [] : [paint('2', '┌')]),
    // A call that is settled with its task has a task state instead of an HTTP status.
    call['status'] === undefined
      ? paint(call['outcome'] === 'complete' ? '32' : '33', printable(String(call['state'])))
      : paint(status < 400 ? '32' : status < 500 ? '33' : '31', String(status)),
    [call['service'], call['tool'], call['method']]
      .filter((part) => part !== undefined)
      .map((part) => printable(String(part)))
      .join(' '),
    ...(call['provider'] ? [paint('2', `by ${String(call['provider'])}`)] : []),
    ...(units.length > 0 ? [units.join(' + ')] : []),
    cost,
    paint('2', `${Math.round(Number(call['duration_ms']))} ms`),
    ...(call['error'] ? [paint('31', String(call['error']))] : []),
    ...(call['client_gone'] ? [paint('33', 'client gone')] : []),
  ];
  return parts.join('  ');
}

function describeRefusal(request: Record<string, unknown>, paint: Paint): string {
  const status = Number(request['status']);
  const requestLine = `${String(request['method'])} ${printable(String(request['path']))}`;
  const reason = request['reason'] === undefined ? [] : [paint('31', printable(String(request['reason'])))];
  return [paint(status < 500 ? '33' : '31', String(status)), requestLine, ...reason].join('  ');
}

/** Consumers choose tool names, so control characters must not reach the terminal. */
const printable = (text: string) => text.replace(/\p{C}/gu, '?');

function describeFacts(facts: Record<string, unknown>, paint: Paint): string {
  let text = '';
  for (const [name, value] of Object.entries(facts)) {
    if (name === 'err' && value !== null && typeof value === 'object') {
      const { message, stack } = value as { message?: string; stack?: string };
      text += `  ${message ?? ''}${stack ? `\n${paint('2', stack.split('\n').slice(1).join('\n'))}` : ''}`;
    } else text += `  ${paint('2', `${name}=`)}${typeof value === 'string' ? value : JSON.stringify(value)}`;
  }
  return text;
}

const STDOUT = 1;
let isStream: boolean | null = null;

/**
 * Writes a log line. If standard output is a file on a full disk, the line is lost and the program continues. A stream
 * would end the program, or stop itself.
 */
export function writeLogLine(line: string): void {
  if ((isStream ??= isTerminalOrPipe())) process.stdout.write(line);
  else writeOrLose(STDOUT, line);
}

/** Writes a text synchronously. If that fails, the text is lost, because there is no other place to report it. */
export function writeOrLose(descriptor: number, text: string): void {
  try {
    writeSync(descriptor, text);
  } catch {
    // The text is lost.
  }
}

function isTerminalOrPipe(): boolean {
  const kind = fstatSync(STDOUT);
  return process.stdout.isTTY || kind.isFIFO() || kind.isSocket();
}
