import { registerHooks } from 'node:module';

// AiMo's SDK imports its own files without their endings, as bundlers take it and Node does not.
const ITS_FILES = /\/@aimo\.network\/\w+\/dist\//;
const hooks = registerHooks({
  resolve(specifier, context, next) {
    const isItsOwn = specifier.startsWith('.') && ITS_FILES.test(context.parentURL ?? '');
    if (!isItsOwn || specifier.endsWith('.js')) return next(specifier, context);
    try {
      return next(`${specifier}.js`, context);
    } catch {
      return next(`${specifier}/index.js`, context);
    }
  },
});
export const { AimoClient } = await import('@aimo.network/client');
export const { EvmClientSigner } = await import('@aimo.network/evm');
export const { SvmClientSigner } = await import('@aimo.network/svm');
hooks.deregister();
