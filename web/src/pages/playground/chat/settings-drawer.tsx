import type { ReactNode } from 'react';
import { Checkbox, Field, TextArea } from '../../../ui/field.tsx';
import { Drawer } from '../../../ui/drawer.tsx';
import { Button } from '../../../ui/button.tsx';
import { Empty } from '../../../ui/empty.tsx';
import type { Service } from '../catalogue.ts';
import { faultOfSetting, NO_SETTINGS, type NumberSetting, type Settings } from './settings.ts';

/** Settings of a conversation: system prompt, parameters, tools, and the cap on the cost of a message. */
export function SettingsDrawer({
  service,
  services,
  settings,
  open,
  onChange,
  onClose,
}: {
  readonly service: Service;
  readonly services: readonly Service[];
  readonly settings: Settings;
  readonly open: boolean;
  readonly onChange: (settings: Settings) => void;
  readonly onClose: () => void;
}): ReactNode {
  const number = (name: NumberSetting, label: string, hint: string, placeholder: string) => (
    <Field
      label={label}
      hint={hint}
      inputMode="decimal"
      value={settings[name]}
      placeholder={placeholder}
      error={faultOfSetting(name, settings[name])}
      onChange={(event) => onChange({ ...settings, [name]: event.target.value })}
    />
  );
  const { model } = service;
  return (
    <Drawer title="Settings" open={open} onClose={onClose}>
      <div className="grid gap-5">
        {model !== undefined && (
          <TextArea
            label="System prompt"
            rows={4}
            value={settings.system}
            placeholder="You are a helpful assistant."
            onChange={(event) => onChange({ ...settings, system: event.target.value })}
          />
        )}
        {number('maxCost', 'Most that a message may cost', 'USD, with all calls under it', 'No cap of your own')}
        {model !== undefined && (
          <>
            {number(
              'maxTokens',
              'Longest answer',
              'Tokens. So much is locked while the call runs',
              model.maxTokens === null ? '' : String(model.maxTokens),
            )}
            <div className="grid grid-cols-2 gap-4">
              {number('temperature', 'Temperature', '0 to 2', 'default')}
              {number('topP', 'Top P', '0 to 1', 'default')}
            </div>
            <Tools
              services={services.filter(({ kind }) => kind === 'tool')}
              chosen={settings.tools}
              onChange={(tools) => onChange({ ...settings, tools })}
            />
          </>
        )}
        <div className="flex gap-2">
          <Button tone="primary" onClick={onClose}>
            Done
          </Button>
          <Button tone="quiet" onClick={() => onChange(NO_SETTINGS)}>
            Reset
          </Button>
        </div>
      </div>
    </Drawer>
  );
}

function Tools({
  services,
  chosen,
  onChange,
}: {
  readonly services: readonly Service[];
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
}): ReactNode {
  return (
    <fieldset>
      <legend className="text-sm font-medium">Tools</legend>
      <p className="mb-2 text-sm text-soft">The gateway calls them for the model. Each call has its own price.</p>
      {services.length === 0 && <Empty title="Nobody offers tools here." />}
      <div className="grid max-h-72 gap-3 overflow-y-auto rounded-lg border border-line p-3.5">
        {services.map(({ name, price, tools }) => (
          <Checkbox
            key={name}
            label={name}
            hint={`${price} · ${(tools ?? []).map((tool) => tool.name).join(', ')}`.slice(0, 200)}
            checked={chosen.includes(name)}
            onChange={(event) =>
              onChange(event.target.checked ? [...chosen, name] : chosen.filter((each) => each !== name))
            }
          />
        ))}
      </div>
    </fieldset>
  );
}
