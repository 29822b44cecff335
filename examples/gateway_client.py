"""A device that talks to a gateway: it sends what its sensors say, and forwards only what comes back."""

import json
import subprocess
import sys
from itertools import product

import numpy as np

from reticent.gateway.demo import POLICY, demo_model

model, rng = demo_model(), np.random.default_rng(0)
people = {"ada": "walking", "bob": "sitting", "eve": "standing"}
command = [sys.executable, "-m", "reticent", "serve", str(POLICY), "--ledger", "client.ledger.db"]
with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as gateway:
    assert gateway.stdin is not None
    assert gateway.stdout is not None
    # All sensors of everybody speak; which of them is heard, and what is sent, is the gateway's choice.
    for _ in range(12):
        for (subject, activity), sensor in product(people.items(), range(len(model.sensors))):
            said = rng.choice(model.symbols, p=model.channel[sensor, 0, model.useful.index(activity)])
            message = {"subject": subject, "sensor": model.sensors[sensor], "symbol": str(said)}
            gateway.stdin.write(json.dumps(message) + "\n")
    gateway.stdin.close()
    for line in gateway.stdout:
        release = json.loads(line)
        print(f"{release['subject']}, step {release['step']}: {release['sensor']:20} {release.get('symbol', '')}")
subprocess.run([sys.executable, "-m", "reticent", "ledger", "verify", "client.ledger.db"], check=True)
