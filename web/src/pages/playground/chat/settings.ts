/** The settings for all messages, as typed. An empty setting is left to the provider. */
export interface Settings {
  readonly system: string;
  readonly temperature: string;
  readonly topP: string;
  readonly maxTokens: string;
  /** The most that one message may cost, in USD. */
  readonly maxCost: string;
  /** Tool services that the gateway calls for the model. */
  readonly tools: readonly string[];
}

export const NO_SETTINGS: Settings = {
  system: '',
  temperature: '',
  topP: '',
  maxTokens: '',
  maxCost: '',
  tools: [],
};

interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly whole?: true;
  readonly places?: number;
}

const BOUNDS = {
  temperature: { min: 0, max: 2 },
  topP: { min: 0, max: 1 },
  maxTokens: { min: 1, max: 10_000_000, whole: true },
  maxCost: { min: 0.000001, max: 1_000_000, places: 6 },
} as const satisfies Partial<Record<keyof Settings, Bounds>>;

export type NumberSetting = keyof typeof BOUNDS;

/** Returns what is wrong with a typed number, or null if it is valid or empty. */
export function faultOfSetting(name: NumberSetting, text: string): string | null {
  if (text.trim() === '') return null;
  const { min, max, whole, places } = BOUNDS[name] as Bounds;
  const value = Number(text);
  if (!Number.isFinite(value)) return 'Write a number.';
  if (value < min || value > max) return `It goes from ${min} to ${max}.`;
  if (whole && !Number.isInteger(value)) return 'Write a whole number.';
  if (places !== undefined && Number(value.toFixed(places)) !== value)
    return `Write at most ${places} digits behind the point.`;
  return null;
}

export const isRight = (settings: Settings): boolean =>
  (Object.keys(BOUNDS) as NumberSetting[]).every((name) => faultOfSetting(name, settings[name]) === null);

/** Counts the settings that differ from the defaults. */
export const countSettings = (settings: Settings): number =>
  (Object.values(settings) as (string | readonly string[])[]).filter((value) => value.length > 0).length;
