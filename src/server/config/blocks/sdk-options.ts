import { option, tableOption, type ValuesOf } from '../option.ts';
import { show, WrongValue } from '../problem.ts';
import { isPrototypeName } from '../names.ts';
import { findPackage, PackageUnusable } from './sdk-package.ts';
import type { OfferCost } from './price-tiers.ts';
import { apiOptions, type HttpTarget, type BlockFile, type ReplyTimeouts } from './block.ts';

/** A package of the AI SDK that serves a block, in a process of its own. */
export interface SdkTarget {
  readonly kind: 'sdk';
  /** The package, such as `@ai-sdk/amazon-bedrock`, or `@ai-sdk/google-vertex/edge#createVertex`. */
  readonly sdk: string;
  /** Settings of its provider. A dot in a name means a setting inside another. */
  readonly settings: Readonly<Record<string, SdkSetting>>;
  /** Further settings, which are secret. */
  readonly secrets: Readonly<Record<string, string>>;
  /** The folder of the file with the block, beside which the package is installed. */
  readonly directory: string;
  /** The rates that the vendor charges the operator. */
  readonly cost?: OfferCost;
  readonly timeouts?: ReplyTimeouts;
}

type SdkSetting = string | number | boolean;

const PACKAGE = /^(?:@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*(?:\/[\w-]+)*(?:#[A-Za-z_$][\w$]*)?$/;
const SETTING = /^[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*){0,4}$/;
const SETTINGS_MAX = 64;
const TEXT_MAX = 16_384;

const settingFault = (name: string) =>
  SETTING.test(name) && name.length <= 128 && !name.split('.').some(isPrototypeName)
    ? null
    : 'is not written like region or headers.x-org';

/** The options of a block that a package of the AI SDK serves instead of an API at an address. */
const SDK_OPTIONS = {
  'params.sdk': option<string | null>({
    takes: 'name of an npm package, such as `@ai-sdk/amazon-bedrock`',
    meaning:
      'Package of the AI SDK that calls the model, instead of `params.api_base`. Install it beside this file. If it exports several providers, name one: `@ai-sdk/google-vertex/edge#createVertex`. See [models of npm packages](run/ai-sdk.md).',
    optional: { text: 'none', fallback: null },
    read: (value) => {
      if (typeof value === 'string' && value.length <= 256 && PACKAGE.test(value)) return value;
      throw new WrongValue(`is ${show(value)}`, 'the name of an npm package, such as "@ai-sdk/amazon-bedrock"');
    },
  }),
  'params.sdk_settings': tableOption({
    takes: `table of at most ${SETTINGS_MAX} settings: text, numbers, or \`true\` and \`false\``,
    optional: 'none',
    meaning:
      'Settings of the provider of `params.sdk`, by the names of its package, such as `region` or `baseURL`. A dot means a setting inside another: `"headers.x-org"`.',
    entries: {
      fault: settingFault,
      max: SETTINGS_MAX,
      value: option<SdkSetting>({
        takes: 'text, a number, true or false',
        meaning: '',
        read: (value) => {
          if (typeof value === 'string' && value.length <= TEXT_MAX) return value;
          if (typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))) return value;
          throw new WrongValue(`is ${show(value)}`, 'text, a number, true or false');
        },
      }),
    },
  }),
  'params.sdk_secrets': tableOption({
    takes: 'table of settings with `std::env::NAME`',
    optional: 'none',
    secret: true,
    meaning:
      'Secret settings of the provider of `params.sdk`, such as `apiKey`, each with the environment variable that has it. A secret itself is refused here.',
    entries: {
      fault: settingFault,
      max: SETTINGS_MAX,
      value: option<string>({
        takes: '`std::env::NAME`',
        meaning: '',
        secret: true,
        onlyReference: true,
        read: (value) => {
          if (typeof value === 'string' && value.length <= TEXT_MAX) return value;
          throw new WrongValue('is not text', '"std::env::NAME"');
        },
      }),
    },
  }),
};

/** The options for where a model or an image service runs: at an address, or in a package of the AI SDK. */
export const apiOrSdkOptions = (endpoint: string) => {
  const { 'params.api_base': base, ...rest } = apiOptions(endpoint);
  return {
    'params.api_base': { ...base, defaultText: 'required without `params.sdk`', fallback: '' },
    ...rest,
    ...SDK_OPTIONS,
  };
};

type Values = ValuesOf<ReturnType<typeof apiOrSdkOptions>>;

function unusablePackage(target: SdkTarget): PackageUnusable | null {
  try {
    findPackage(target);
    return null;
  } catch (error) {
    if (error instanceof PackageUnusable) return error;
    throw error;
  }
}

export function toApiOrSdkTarget(
  values: Values,
  complain: (key: string, wrong: string, right: string) => void,
  { directory, packages }: BlockFile,
): HttpTarget | SdkTarget {
  const { 'params.sdk': sdk, 'params.sdk_settings': settings, 'params.sdk_secrets': secrets } = values;
  const { 'params.api_base': url, 'params.api_key': apiKey } = values;
  if (sdk === null) {
    if (url === '') complain('params.api_base', 'is missing', 'an http:// or https:// URL, or params.sdk');
    for (const [key, table] of [
      ['params.sdk_settings', settings],
      ['params.sdk_secrets', secrets],
    ] as const)
      if (Object.keys(table).length > 0)
        complain(key, 'is given without params.sdk', 'leave it out, or add params.sdk');
    return { kind: 'http', url, apiKey };
  }
  if (url !== '')
    complain('params.api_base', 'stands beside params.sdk', 'params.sdk_settings.baseURL, if the package needs one');
  if (apiKey !== null) complain('params.api_key', 'stands beside params.sdk', 'params.sdk_secrets.apiKey');
  for (const name of Object.keys(secrets))
    if (Object.hasOwn(settings, name))
      complain(`params.sdk_settings.${name}`, 'is also in sdk_secrets', 'one of the two');
  const target: SdkTarget = { kind: 'sdk', sdk, settings, secrets, directory };
  const unusable = packages ? unusablePackage(target) : null;
  if (unusable !== null) complain('params.sdk', unusable.message, unusable.right);
  return target;
}
