"""Trains a small network on a directory of images with PyTorch, and continues after an interruption.

    python torch_loop.py photos checkpoint.pt

photos has a subdirectory of JPEG or PNG files for each class."""
import os
import sys

import torch

import millrace as mr

EPOCHS = 3


def main(directory, checkpoint):
    dataset = mr.Dataset.image_directory(directory).decode_image(
        64, crop="random_resized", flip=True, mean=(124, 116, 104), std=(58, 57, 57), layout="NCHW"
    )
    dataset = dataset.map(lambda image, label, name: (image, label))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = mr.torch.DataLoader(dataset, batch_size=8, shuffle=True, seed=1, device=device)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, stride=4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(16 * 15 * 15, len(os.listdir(directory))),
    ).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    first = 0
    if os.path.exists(checkpoint):
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        first = saved["loader"]["epoch"]
    for epoch in range(first, EPOCHS):
        for step, (images, labels) in enumerate(loader):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 100 == 0:
                print(f"epoch {epoch}, step {step}: loss {loss.item():.3f}")
                save(checkpoint, model, optimizer, loader)
        save(checkpoint, model, optimizer, loader)


def save(checkpoint, model, optimizer, loader):
    states = {"model": model, "optimizer": optimizer, "loader": loader}
    torch.save({name: value.state_dict() for name, value in states.items()}, f"{checkpoint}.new")
    os.replace(f"{checkpoint}.new", checkpoint)


if __name__ == "__main__":
    main(*sys.argv[1:])
