import { textList, trueOrFalse } from '../option.ts';

const matching = (pattern: RegExp, such: string) => (value: string) =>
  pattern.test(value) ? null : `is not written like ${such}`;

/** Options that image and video services have in common. */
export const MEDIA_OPTIONS = {
  supported_params: textList({
    takes: 'list of field names',
    meaning: 'Request fields that the service uses, such as `seed`.',
    fault: matching(/^[a-z][a-z0-9_]{0,63}$/, 'seed or negative_prompt'),
    max: 100,
  }),
  aspect_ratios: textList({
    takes: 'list of ratios such as `16:9`',
    meaning: 'Aspect ratios that the service makes.',
    fault: matching(/^[1-9]\d{0,3}:[1-9]\d{0,3}$/, '16:9'),
    max: 100,
  }),
  quotes: trueOrFalse({
    optional: { text: 'true', fallback: true },
    meaning:
      'Whether a quote fixes the price of the service for five minutes. With `false`, a quote shows the price, but does not fix it.',
  }),
};

/** The fields of MediaFacts for the option `quotes`. */
export const quoted = (quotes: boolean): { readonly unquoted?: true } => (quotes ? {} : { unquoted: true });
