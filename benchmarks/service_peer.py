"""The usual service of a scikit-learn model, with FastAPI: the peer of benchmarks/service.py.

    python benchmarks/service_peer.py rows.npz PORT
    python benchmarks/service_peer.py rows.npz FOLDER    save the model for `mlflow models serve`

Run in the environment of `make service-clients`, which has FastAPI.
"""

import sys

import numpy as np
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, create_model
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

stored = np.load(sys.argv[1])
X, y = stored["X"], stored["y"]
names = [f"x{j}" for j in range(X.shape[1])]
model = LinearDiscriminantAnalysis().fit(X, y)
if not sys.argv[2].isdigit():
    import mlflow
    import pandas as pd

    model.fit(pd.DataFrame(X, columns=names), y)
    mlflow.sklearn.save_model(model, sys.argv[2], serialization_format="pickle")
    raise SystemExit

classes = model.classes_.tolist()
app = FastAPI()
Row = create_model("Row", **dict.fromkeys(names, (float, ...)))


class Rows(BaseModel):
    rows: list[Row]


@app.post("/predict")
async def predict(request: Rows):
    values = np.array([[getattr(row, name) for name in names] for row in request.rows])
    labels = model.predict(values).tolist()
    p = model.predict_proba(values).tolist()
    return {
        "predictions": [
            {"predicted": label, "probabilities": dict(zip(classes, row, strict=True))}
            for label, row in zip(labels, p, strict=True)
        ]
    }


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", access_log=False)
