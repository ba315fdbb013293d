"""Writes down one steady step of a rank as zeroplan's own events, while a tracer runs it: a document of schema
zeroplan.program/1 (cli/schemas/program.json). A FakeMeter tells it what its storages do."""

import json
import re

import torch
from record_operators import call_of, operators_of

FORWARD, BACKWARD, STEP = "forward", "backward", "optimizer_step"
# Of what a tracer can name: their category, and what each is called.
STATES = {"parameters": ("parameters", "parameter"), "gradients": ("gradients", "gradient"),
          "optimizer states": ("optimizer_states", "optimizer state"),
          "master parameters": ("master_parameters", "master parameter")}


class Scopes:
    """Which module runs, by its name in the model; layers of a list have the same."""

    def __init__(self, models):
        self.names = {}
        for model in models:
            for name, module in model.named_modules():
                name = re.sub(r"_(fsdp|checkpoint)_wrapped_module\.?|module\.", "", name)
                self.names[module] = re.sub(r"\.\d+(?=\.|$)", "", name).strip(".")
        self.stack = [""]
        torch.nn.modules.module.register_module_forward_pre_hook(self.enter)
        torch.nn.modules.module.register_module_forward_hook(self.leave, always_call=True)

    def enter(self, module, _):
        self.stack.append(self.names.get(module, self.stack[-1]))

    def leave(self, *_):
        self.stack.pop()

    def now(self):
        return self.stack[-1]


class Tensor:
    """A storage from when it is made until it is freed."""

    def __init__(self, size, made_by, scope, made_in):
        self.size, self.made_by, self.scope, self.made_in = size, made_by, scope, made_in
        self.freed_in = None
        self.category = self.stream = self.known_as = None

    def is_known(self, category, name, stream=None):
        self.category, self.known_as, self.stream = category, name, stream

    def name(self):
        if self.known_as:
            return self.known_as
        made_by = re.sub(r"^aten\.|\.[A-Za-z_]+$", "", self.made_by or "storage")
        return f"{made_by} of {self.scope}" if self.scope else made_by


class Recorder:
    """Of a step of so many micro-batches. `models`: whose modules name what they make; `name_group`: a group by its
    ranks (record_document.group_namer)."""

    def __init__(self, meter, models, micro_batches, name_group):
        self.meter, self.micro_batches, self.name_group = meter, micro_batches, name_group
        self.scopes = Scopes(models)
        self.tensors = {}  # all, by an own number
        self.living = {}  # the one in each storage, by the meter's number
        self.passes = [[]]  # events: (kind, what)
        self.phase = None  # that the events of the last pass are of
        self.operators, self.calls, self.groups = {}, {}, {}
        self.resident = []
        for number, size, _, what in meter.storages.values():
            if size:
                self.resident.append(self.make(number, size, what, "", None))
        meter.recorder = self

    def make(self, number, size, what, scope, made_in):
        self.living[number] = len(self.tensors)
        self.tensors[self.living[number]] = Tensor(size, what and what[0], scope, made_in)
        return self.living[number]

    def resized(self, number, before, size, what):
        """A storage of the meter has another size."""
        if before:
            own = self.living.pop(number)
            self.write("-", own)
            self.tensors[own].freed_in = len(self.passes)
        if size:
            self.enter()
            self.write("+", self.make(number, size, what, self.scopes.now(), len(self.passes)))

    def living_in(self, tensors):
        """Those whose storages were seen."""
        for tensor in tensors:
            tensor = getattr(tensor, "_local_tensor", tensor)  # of a DTensor
            found = self.meter.storages.get(tensor.untyped_storage()._cdata)
            if found and found[0] in self.living:
                yield self.tensors[self.living[found[0]]]

    def ran(self, function, args, kwargs, result):
        """An operator was dispatched, and what it makes was seen."""
        call = call_of(function, args, kwargs, result)
        if call:
            self.sends(**call)
            return
        if function._schema.name.endswith("split_with_sizes_copy"):  # as FSDP2 hands out what it gathered
            for tensor in self.living_in((kwargs or {}).get("out") or ()):
                tensor.is_known("communication_buffers", "gathered parameter")
        for operator in operators_of(function, args, kwargs, result):
            self.works(operator)

    def works(self, operator):
        """A kernel runs: an entry of `operators` but for its scope."""
        self.enter()
        by_autograd = torch._C._current_graph_task_id() != -1
        key = json.dumps({"name": operator.pop("name"), "scope": self.scopes.now(), "gradient": by_autograd,
                          **operator})
        self.write("k", self.operators.setdefault(key, len(self.operators)))

    def sends(self, collective, payload_bytes, ranks, sides, waits):
        """A collective of these ranks begins; `sides`: the tensors it reads and writes. What is not waited for
        has a stream of its own, but for what divides layers, whose next kernel reads it."""
        self.enter()
        group = self.groups.setdefault(ranks, self.name_group(ranks))["name"]
        gathers = collective == "all-gather"
        waits = waits or self.in_step() or group in ("tp", "cp", "ep")
        stream = "compute" if waits else "gather" if gathers else "reduce"
        if stream != "compute":
            for tensor in self.living_in(sides):
                tensor.is_known("communication_buffers", f"{collective} buffer", stream)
        key = (group, collective, payload_bytes, stream)
        self.write("c", self.calls.setdefault(key, len(self.calls)))

    def in_step(self):
        return len(self.passes) > 2 * self.micro_batches

    def enter(self):
        """Something begins: it is of the next pass where the meter's phase says so. What is freed ends the
        pass before."""
        backward = self.meter.phase == "backward"
        if not self.in_step() and backward != (len(self.passes) % 2 == 0):
            self.passes.append([])
            self.phase = STEP if self.in_step() else BACKWARD if backward else FORWARD
        own = self.meter.phase if self.meter.phase == "loss" else FORWARD
        phase = STEP if self.in_step() else BACKWARD if backward else own
        if phase != (self.phase or FORWARD):
            self.write("=", phase)
            self.phase = phase

    def write(self, kind, what):
        self.passes[-1].append((kind, what))

    def name(self, category, tensors):
        """Says what living tensors are."""
        for tensor in self.living_in(tensors):
            tensor.is_known(*STATES[category])

    def categorize(self):
        """By how long it lives, where nothing else is known of it."""
        for tensor in self.tensors.values():
            if tensor.category:
                continue
            lasts = tensor.made_in is None and tensor.freed_in is None
            kept = (tensor.made_in or 0) % 2 == 1 and tensor.freed_in == (tensor.made_in or 0) + 1
            tensor.category = "workspace" if lasts else "activations" if kept else "temporaries"

    def document(self, head):
        """All of it. `head`: its first fields."""
        self.categorize()
        slots = Slots(self.tensors)
        resident = [slots.take(number) for number in self.resident]
        passes = []
        for index, events in enumerate(self.passes):
            kind = (FORWARD, BACKWARD)[index % 2] if index < 2 * self.micro_batches else STEP
            passes.append({"pass": kind, "events": [slots.word(*event) for event in events]})
        return {"schema": "zeroplan.program/1", **head, "groups": list(self.groups.values()),
                "tensors": slots.kinds(),
                "calls": [{"group": group, "collective": what, "payload_bytes": payload, "stream": stream}
                          for group, what, payload, stream in self.calls],
                "operators": [json.loads(key) for key in self.operators],
                "resident": slots.numbered(resident),
                "passes": [{**p, "events": slots.numbered(p["events"])} for p in passes]}


class Slots:
    """Numbers for tensors: alike ones that do not live together share one."""

    def __init__(self, tensors):
        self.tensors = tensors
        self.free = {}  # of each kind, the slots that nobody has
        self.count = {}  # and how many there are
        self.taken = {}  # by number: its kind and slot

    def take(self, number):
        tensor = self.tensors[number]
        kind = (tensor.name(), tensor.size, tensor.category, tensor.stream or "compute")
        unused = self.free.setdefault(kind, [])
        slot = unused.pop() if unused else self.count.get(kind, 0)
        self.count[kind] = max(self.count.get(kind, 0), slot + 1)
        self.taken[number] = (kind, slot)
        return self.taken[number]

    def word(self, event, what):
        if event == "+":
            return event, self.take(what)
        if event == "-":
            kind, slot = self.taken.pop(what)
            self.free[kind].append(slot)
            return event, (kind, slot)
        return event, what

    def kinds(self):
        return [{"name": name, "bytes": size, "category": category, "stream": stream, "slots": count}
                for (name, size, category, stream), count in self.count.items()]

    def numbered(self, words):
        """With the slots of all kinds in a row."""
        first, numbers = 0, {}
        for kind, count in self.count.items():
            numbers[kind] = first
            first += count

        def number(place):
            kind, slot = place
            return numbers[kind] + slot
        return [number(w) if isinstance(w[0], tuple) else
                f"{w[0]}{number(w[1]) if isinstance(w[1], tuple) else w[1]}" for w in words]
