export { bearerKey, readUrl } from './blocks/block-options.ts';
export { BLOCK_TABLES, BLOCKS, readBlocks, readOffers } from './blocks/blocks.ts';
export { imageKinds, imageVariant } from './blocks/image-prices.ts';
export type {
  ChainConfig,
  ChainPaymentsConfig,
  ClusterConfig,
  CommandTarget,
  Config,
  HttpTarget,
  KeyPlace,
  LimitsConfig,
  Mode,
  OAuthConfig,
  Service,
  ServiceConfig,
  SignInConfig,
  TunnelConfig,
} from './config.ts';
export type { AdmittedProviders } from './options/tunnel.ts';
export { secretsOf } from './secrets.ts';
export { configDifferences, type NamedDifferences } from './differences.ts';
export { domainFault } from './domain.ts';
export { type ExplainedConfig, type ExplainedOption, explainConfig } from './explain.ts';
export { type LoadOptions, loadConfig } from './file.ts';
export { freeze } from './freeze.ts';
export { ANTHROPIC_VERSION, keyHeaders, MESSAGES_PATH, RESPONSES_PATH } from './key-headers.ts';
export { isKey, keypairFileOption, privateKeyOption } from './key-options.ts';
export { indexLines } from './lines.ts';
export { IMAGE_PATHS, VIDEOS_PATH } from './media-paths.ts';
export { contextDeclared, IMAGE_TOKENS_MAX, type ModelFacts, type NativeWireName } from './model-facts.ts';
export { ALIAS_PREFIX, foldName, serviceNameFault, SORT_SUFFIXES } from './names.ts';
export { option } from './option.ts';
export { otlpHeaderPairs } from './otlp-headers.ts';
export { type AgentFacts, type MediaFacts, type Primitive, PRIMITIVES } from './primitive.ts';
export { ConfigError, type ConfigProblem, nearest, show, WrongValue } from './problem.ts';
export { complain, type Environment, isTable, type Reading, type Table, unknownKey } from './reading.ts';
export { readTable, valuesOf } from './table.ts';
export { parseToml, readTomlFile } from './toml.ts';
