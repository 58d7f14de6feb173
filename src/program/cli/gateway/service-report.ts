import { formatUsd, isPerMillion, METERS, type Meter, rateInFile, type Rates } from '#billing/amounts';
import type { Primitive, ServiceConfig } from '#config';
import type { loadChecks, Log } from '#proxy';
import { painter } from '../terminal.ts';

/**
 * A configured service on one line, without secrets: name, prices (a range if they differ), and its address or command.
 */
export function describeService({ service, target }: ServiceConfig): string {
  const { name, primitive, providerName, rates, variants } = service;
  // What agents below it may spend is a part of its price for whoever calls it.
  const nested = service.primitive === 'agent' ? service.agent.nestedMax : null;
  const prices = METERS.filter((meter) => rates[meter] !== undefined).map((meter) =>
    describePrice(primitive, meter, [rates, ...Object.values(variants)]),
  );
  const where = placeOf(target);
  if (nested !== null && nested > 0n) prices.push(`nested_max ${formatUsd(nested)}`);
  return `${name}  by ${providerName}  ${prices.join(', ')}  → ${where}`;
}

function placeOf(target: ServiceConfig['target']): string {
  if (target.kind === 'http') return `${target.url}${target.apiKey === null ? ' (no key)' : ''}`;
  return target.kind === 'sdk' ? target.sdk : target.command;
}

function describePrice(primitive: Primitive, meter: Meter, all: readonly Rates[]): string {
  // The file of a model has the price of a minute of sound.
  const ofMinute = primitive === 'model' && meter === 'second';
  const amounts = all.flatMap((rates) => rates[meter] ?? []);
  const [least, most] = [amounts.reduce((a, b) => (b < a ? b : a)), amounts.reduce((a, b) => (b > a ? b : a))].map(
    (rate) => rateInFile(primitive, meter, rate),
  );
  const price = least === most ? least : `${least} to ${most}`;
  return `${ofMinute ? 'minute' : meter} ${price}${isPerMillion(meter) ? '/1M' : ''}`;
}

type Checks = Awaited<ReturnType<typeof loadChecks>>;

/** The log of checks, which writes nothing, because their results are printed. */
export async function silentLog(): Promise<Log> {
  const { createLog } = await import('#proxy');
  return createLog({ level: 'silent', style: 'json', secrets: [], write() {}, now: Date.now });
}

/** Runs checks of services and prints a line for each. Sets the exit code if one failed. `scrub` removes secrets. */
export async function printChecks(
  checks: ReturnType<Checks['serviceChecks']>,
  runChecks: Checks['runChecks'],
  scrub: (text: string) => string,
): Promise<void> {
  const paint = painter();
  const width = Math.max(0, ...checks.map(({ name }) => name.length));
  const ok = await runChecks(checks, Date.now, ({ kind, name }, result) => {
    const mark = result.ok ? paint('green', '✓') : paint('red', '✗');
    const lines = [
      `${mark} ${kind.padEnd(9)} ${name.padEnd(width)}  ${paint('dim', `${result.ms} ms`.padStart(8))}  ${scrub(result.detail)}`,
      ...result.advice.map((advice) => `  ${paint('yellow', '!')} ${scrub(advice)}`),
    ];
    process.stdout.write(`${lines.join('\n')}\n`);
  });
  if (!ok) process.exitCode = 1;
}
