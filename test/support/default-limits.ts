import { loadConfig, type LimitsConfig } from '#config';

/** The limits of a gateway whose file sets none. Worlds with a part of a gateway say only what they need instead. */
export const DEFAULT_LIMITS: LimitsConfig = loadConfig({
  file: 'none.toml',
  text: '',
  env: {},
  mode: 'production',
}).limits;
