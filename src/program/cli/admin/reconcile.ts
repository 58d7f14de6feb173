import { Command, Option } from 'commander';
import { administer, withAdminOptions, type AdminFlags } from './admin-client.ts';
import { CliError, painter, USAGE_EXIT } from '../terminal.ts';
import type { Compared, OwnRow } from '../reconcile/compare.ts';
import type { Vendor } from '../reconcile/csv-formats.ts';

interface ReconcileFlags extends AdminFlags {
  readonly provider?: string;
  readonly bound: string;
  readonly keep?: boolean;
}

/** The answer of `GET /admin/v1/reconciliation`. */
interface OwnCalls {
  readonly archived_before: string | null;
  readonly providers: readonly string[];
  readonly rows: readonly OwnRow[];
}

const VENDORS: readonly Vendor[] = ['openai', 'anthropic', 'openrouter', 'csv'];
const DIFFERENCES_EXIT = 1;
const FILE_BYTES_MAX = 256 * 2 ** 20;

const HELP = `
Reads exports of usage and of costs, also both at once, and compares them with the calls that were settled here, by UTC
day and model. It tells what may explain a difference. Nothing is booked, and nothing is sent to the vendor.

  openai      usage and costs of platform.openai.com/usage as CSV; organization/usage/completions, …/embeddings and
              organization/costs of its API as JSON
  anthropic   usage and costs of the console as CSV; usage_report/messages and cost_report of its API as JSON
  openrouter  generations of openrouter.ai/activity as CSV; /api/v1/activity as JSON
  csv         any vendor, with --provider: the columns day, model, and requests, prompt_tokens, completion_tokens,
              cached_tokens, reasoning_tokens or cost_usd

Exit codes: 0 the difference is within the bound · 1 it is beyond · 2 nothing could be compared

Examples:
  tollgate reconcile openai usage.csv costs.csv
  tollgate reconcile anthropic usage.json --bound 2% --keep
  tollgate reconcile csv invoice.csv --provider mistral --json | jq .totals`;

export function reconcileCommand(): Command {
  return withAdminOptions(
    new Command('reconcile')
      .summary("compare a vendor's usage and costs with the calls here")
      .description('Compare exports of a vendor with the calls of its models that were settled here.')
      .argument('<vendor>', VENDORS.join(', '))
      .argument('<files...>', 'exports of the vendor')
      .option(
        '--provider <name>',
        'the provider here that the vendor serves; default: those with an address of the vendor',
      )
      .addOption(
        new Option('--bound <percent>', 'the difference of a model, or of all, that is too much').default('1%'),
      )
      .option('--keep', 'keep the result for the console and the metrics of the gateway'),
  )
    .addHelpText('after', HELP)
    .action(async (vendor: string, files: readonly string[], flags: ReconcileFlags) => {
      try {
        await reconcile(vendor, files, flags);
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        throw new CliError(message, { exitCode: USAGE_EXIT, cause: error });
      }
    });
}

async function reconcile(name: string, files: readonly string[], flags: ReconcileFlags): Promise<void> {
  const vendor = VENDORS.find((one) => one === name);
  if (vendor === undefined)
    throw new CliError(`${JSON.stringify(name)} is no known vendor. Known are ${VENDORS.join(', ')}`);
  if (vendor === 'csv' && flags.provider === undefined)
    throw new CliError('The columns do not say whose calls these are: give --provider, the name of the provider here');
  const bound = boundOf(flags.bound);
  // Loaded here, because the help of the command needs none of it.
  const [{ readExport }, { compare }, { explain }, { showComparison }, { stat, readFile }] = await Promise.all([
    import('../reconcile/read-export.ts'),
    import('../reconcile/compare.ts'),
    import('../reconcile/explain.ts'),
    import('../reconcile/report.ts'),
    import('node:fs/promises'),
  ]);
  const exports = await Promise.all(
    files.map(async (file) => readExport(vendor, await readText(file, { stat, readFile }), file)),
  );
  const vendorRows = exports.flatMap(({ rows }) => rows);
  const days = vendorRows.map(({ day }) => day).sort();
  const [firstDay, lastDay] = [days[0], days.at(-1)];
  if (firstDay === undefined || lastDay === undefined)
    throw new CliError(`There is no use in ${files.join(', ')}: nothing can be compared`);
  const query = new URLSearchParams({
    ...(flags.provider === undefined ? { vendor } : { provider: flags.provider }),
    start_date: firstDay,
    end_date: lastDay,
  });
  await administer(flags, {
    async run(admin) {
      const own = (await admin.request('GET', `/reconciliation?${query}`)).data as OwnCalls;
      const comparison = compare(vendorRows, own.rows, bound);
      if (!comparison.compared.use && !comparison.compared.costs)
        throw new CliError(
          'Nothing could be compared: the export has only costs, and this gateway does not know what these calls cost. Give the offers their cost in the configuration, or an export with calls or tokens',
          { exitCode: USAGE_EXIT },
        );
      const reasons = explain(comparison, own.archived_before, firstDay);
      if (comparison.isBeyond) process.exitCode = DIFFERENCES_EXIT;
      if (flags.keep)
        await admin.request('POST', '/reconciliation/results', {
          vendor: flags.provider ?? vendor,
          first_day: firstDay,
          last_day: lastDay,
          bound,
          difference: Math.max(...[comparison.totals, ...comparison.models].map(({ difference }) => difference)),
          beyond: comparison.isBeyond,
          models: [...comparison.models.slice(0, MODELS_KEPT), comparison.totals].map(resultOf),
          reasons,
        });
      const formats = exports.map(({ format }) => format);
      return { vendor, formats, providers: own.providers, firstDay, lastDay, ...comparison, reasons };
    },
    show: ({ reasons, ...result }) => showComparison(result, result, reasons, painter()),
  });
}

const MODELS_KEPT = 500;

const resultOf = ({ model, difference, isBeyond, settled, billed, margin }: Compared) => ({
  model,
  difference,
  beyond: isBeyond,
  requests: settled?.requests ?? 0,
  billed_requests: billed === null ? 0 : billed.requests,
  cost_micro_usd: settled === null ? 0 : settled.cost,
  billed_micro_usd: billed === null ? 0 : billed.cost,
  charged_micro_usdc: settled?.charged ?? 0,
  margin_micro_usd: margin,
});

async function readText(
  file: string,
  { stat, readFile }: Pick<typeof import('node:fs/promises'), 'stat' | 'readFile'>,
): Promise<string> {
  try {
    const { size } = await stat(file);
    if (size <= FILE_BYTES_MAX) return await readFile(file, 'utf8');
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
  throw new CliError(`${file} has more than ${FILE_BYTES_MAX / 2 ** 20} MiB. Export fewer days at once`);
}

function boundOf(text: string): number {
  const [, percent] = /^(\d{1,3}(?:\.\d{1,4})?)%?$/.exec(text.trim()) ?? [];
  if (percent === undefined || Number(percent) > 100)
    throw new CliError(`--bound is ${JSON.stringify(text)}, not a percentage from 0% to 100%, such as 2%`);
  return Number(percent) / 100;
}
