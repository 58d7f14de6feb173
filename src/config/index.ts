export { bearerKey, readUrl } from './blocks/block.ts';
export { BLOCK_TABLES, BLOCKS, readBlocks, readOffers } from './blocks/blocks.ts';
export { imageKinds, imageVariant } from './blocks/image-block.ts';
export {
  type ChainConfig,
  type ChainPaymentsConfig,
  type ClusterConfig,
  type Config,
  type KeyPlace,
  type LimitsConfig,
  type Mode,
  type OAuthConfig,
  type SignInConfig,
  type TunnelConfig,
  freeze,
} from './config.ts';
export {
  type CommandTarget,
  type HttpTarget,
  type Service,
  type ServiceConfig,
  contextDeclared,
  IMAGE_TOKENS_MAX,
  type ModelFacts,
  type AgentFacts,
  type MediaFacts,
  type Primitive,
  PRIMITIVES,
} from './service.ts';
export type { AdmittedProviders } from './options/network.ts';
export { secretsOf, configDifferences, type NamedDifferences } from './option-values.ts';
export { domainFault, ALIAS_PREFIX, foldName, serviceNameFault, SORT_SUFFIXES } from './names.ts';
export { type ExplainedConfig, type ExplainedOption, explainConfig, type LoadOptions, loadConfig } from './file.ts';
export {
  ANTHROPIC_VERSION,
  keyHeaders,
  MESSAGES_PATH,
  RESPONSES_PATH,
  IMAGE_PATHS,
  VIDEOS_PATH,
  type NativeWireName,
} from './upstream-api.ts';
export { isKey, keypairFileOption, privateKeyOption } from './key-options.ts';
export { indexLines, parseToml, readTomlFile } from './toml.ts';
export { option } from './option.ts';
export { otlpHeaderPairs } from './options/telemetry.ts';
export { ConfigError, type ConfigProblem, nearest, show, WrongValue } from './problem.ts';
export {
  complain,
  type Environment,
  isTable,
  type Reading,
  type Table,
  unknownKey,
  readTable,
  valuesOf,
} from './reading.ts';
