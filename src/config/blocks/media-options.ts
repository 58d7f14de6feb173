import { textList, trueOrFalse } from '../option.ts';

const matching = (pattern: RegExp, such: string) => (value: string) =>
  pattern.test(value) ? null : `is not written like ${such}`;

/** Options that image and video services have in common. */
export const MEDIA_OPTIONS = {
  supported_params: textList({
    takes: 'list of field names',
    meaning: 'Fields of a request that the service heeds, such as `seed`.',
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
    meaning: 'A quote binds the service to its price for five minutes. With `false` its price is told, and not bound.',
  }),
};

/** The fields of MediaFacts for the option `quotes`. */
export const quoted = (quotes: boolean): { readonly unquoted?: true } => (quotes ? {} : { unquoted: true });
