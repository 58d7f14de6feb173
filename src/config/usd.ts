import { formatUsd, MoneyError, parseUsd, type MicroUsd } from '#billing/amounts';
import { option, type Option } from './option.ts';
import { show, WrongValue } from './problem.ts';

/**
 * An option for an amount of USD between two bounds. The file has a number or text, which is parsed exactly. `min`,
 * `max`, `default` and the value are in micro-USD.
 */
export function usd(options: {
  readonly min: MicroUsd;
  readonly max: MicroUsd;
  readonly default: MicroUsd;
  readonly meaning: string;
}): Option<MicroUsd> {
  const { min, max, meaning } = options;
  const takes = `USD, ${formatUsd(min)} to ${formatUsd(max)}`;
  return option({
    takes,
    meaning,
    optional: { text: formatUsd(options.default), fallback: options.default },
    read: (value) => {
      let amount: MicroUsd;
      try {
        amount = parseUsd(typeof value === 'bigint' ? String(value) : value, 'it');
      } catch (error) {
        if (!(error instanceof MoneyError)) throw error;
        throw new WrongValue(`is ${show(value)}: ${error.message}`, takes);
      }
      if (amount < min || amount > max) throw new WrongValue(`is ${show(value)}`, takes);
      return amount;
    },
  });
}
